"""The generated files that only list what the table says: headers, the export map, the checks."""

import hashlib

from table import resolvable

# What libsmt.so exports beside the driver: interpose/capture/.
CAPTURE = ["dlsym", "nvrtcAddNameExpression", "nvrtcCompileProgram", "nvrtcCreateProgram",
           "nvrtcDestroyProgram",
           "nvrtcGetCUBIN", "nvrtcGetPTX"]
BANNER = "// Generated from runtime/protocol/api/ by generate.py. Do not edit.\n"


def header(*includes):
    return BANNER + "#pragma once\n\n" + "".join(f"#include {i}\n" for i in includes) + "\n"


def exact_names(entries):
    bases = {e.base for e in entries if e.symbol != e.base}
    redirected = sorted(e.symbol for e in entries
                        if e.has_signature and e.symbol == e.base and (e.twin or e.base in bases))
    redirected.append("cuGraphInstantiate")
    text = header("<cuda.h>", "<cudaProfiler.h>")
    text += ("// cuda.h renames most functions to their newest version (cuMemAlloc is cuMemAlloc_v2). From "
             "here on\n"
             "// a name is the symbol of that name.\n")
    return text + "".join(f"#undef {name}\n" for name in sorted(set(redirected)))


# Not for programs, but for the server itself, as are the areas "green" and "diagnostics".
SERVER_ASKS = ("cuGraphBatchMemOpNodeGetParams", "cuGraphEventRecordNodeGetEvent",
               "cuGraphEventWaitNodeGetEvent")


def driver_api(entries):
    text = header("<cstddef>", "<cstdint>", "", '"exact_names.gen.h"').replace('#include \n', "\n")
    text += ("namespace smt {\n\nusing AnyFunction = void (*)();\n\n"
             "// The driver's functions by exported name; null where the driver has none. Some that smt does "
             "not support for\n"
             "// programs are there for native fallback only, without their type.\nstruct DriverApi {\n")
    members = []
    for e in entries:
        for symbol in e.exports():
            members.append(symbol)
            # those are for the server itself
            if e.treatment == "unsupported" and e.area not in ("green", "diagnostics") and \
                    e.symbol not in SERVER_ASKS:
                text += f"    AnyFunction {symbol};\n"
            else:
                text += f"    CUresult (*{symbol})({e.signature()});\n"
    text += ("};\n\nstruct DriverApiName {\n    const char* symbol;\n    size_t offset;   // in DriverApi\n"
             "};\n\n")
    text += "inline constexpr DriverApiName kDriverApiNames[] = {\n"
    text += "".join(f'    {{"{m}", offsetof(DriverApi, {m})}},\n' for m in members)
    return text + "};\n\n}  // namespace smt\n"


def driver_functions(entries):
    text = header()
    text += "// X(name) for each member of DriverApi, in its order.\n#define SMT_DRIVER_FUNCTIONS(X) \\\n"
    return text + " \\\n".join(f"    X({symbol})" for e in entries for symbol in e.exports()) + "\n"


def table_hash(entries):
    lines = "\n".join(" ".join(e.line.split()) for e in entries if e.travels)
    return int.from_bytes(hashlib.sha256(lines.encode()).digest()[:8], "big")


def opcodes(entries):
    travelling = [e for e in entries if e.travels]
    text = header("<cstdint>")
    text += "namespace smt::protocol {\n\nenum class GeneratedOp : uint16_t {\n"
    text += "".join(f"    {e.op} = {256 + i},\n" for i, e in enumerate(travelling))
    text += f"}};\n\ninline constexpr uint16_t kGeneratedOps = {len(travelling)};\n"
    text += f"inline constexpr uint64_t kTableHash = {table_hash(entries):#x}ull;\n\n"
    text += "inline constexpr const char* kGeneratedOpNames[] = {\n"
    text += "".join(f'    "{e.symbol}",\n' for e in travelling)
    text += ("};\n\n// The driver function of a generated opcode, or nullptr.\n"
             "constexpr const char* op_name(uint16_t op) {\n"
             "    return op >= 256 && op < 256 + kGeneratedOps ? kGeneratedOpNames[op - 256] : nullptr;\n"
             "}\n\n")
    return text + "}  // namespace smt::protocol\n"


def driver(entries):
    text = header('"exact_names.gen.h"')
    text += "namespace smt::interpose::driver {\n\n"
    groups = [
        ("Written by hand, one file an area.", ("early", "written")),
        ("Older versions in terms of the newer: older.cpp.", ("older",)),
        ("Generated (stubs.gen.cpp): one call to the server; `real` ones ask the real driver first.",
         ("remote", "async", "real")),
    ]
    for title, treatments in groups:
        text += f"// {title}\n"
        area = None
        for e in entries:
            if e.treatment in treatments:
                text += "" if e.area == area else f"// {e.area}\n"
                area = e.area
                text += f"CUresult {e.symbol}({e.signature(extra=True)});\n"
        text += "\n"
    return text + "}  // namespace smt::interpose::driver\n"


def resolve(entries):
    rows = resolvable(entries)
    text = header() + "namespace smt::interpose {\n\n"
    text += 'extern "C" {\n' + "".join(f'void smt_export_{r[3]}() __asm__("{r[3]}");\n'
                                       for r in rows) + "}\n\n"
    text += ("// What cuGetProcAddress gives for (name, version): the row of that name with the highest "
             "version that is\n"
             "// no higher than the one asked for; per_thread rows only when asked for, and before the "
             "others then.\n"
             "// Sorted by name, per_thread, version.\n"
             "struct Resolvable {\n    const char* name;\n    int version;\n    bool per_thread;\n"
             "    void (*fn)();\n    const char* symbol;\n};\n\n"
             "inline constexpr Resolvable kResolvable[] = {\n")
    for name, version, per_thread, symbol in rows:
        text += f'    {{"{name}", {version}, {str(per_thread).lower()}, smt_export_{symbol}, "{symbol}"}},\n'
    return text + "};\n\n}  // namespace smt::interpose\n"


def exports_map(entries):
    symbols = sorted(CAPTURE + [s for e in entries for s in e.exports()])
    return ("/* Generated from runtime/protocol/api/ by generate.py. Do not edit. */\n{\n    global:\n"
            + "".join(f"        {s};\n" for s in symbols) + "    local:\n        *;\n};\n")


def coverage(entries):
    text = header() + "namespace smt {\n\n"
    text += ('// Every entry point, in the table\'s order. treatment: "early", "written", "older", "alias", '
             '"remote",\n'
             '// "async", "real" or "unsupported" (runtime/protocol/api/README.md).\n'
             "struct CoverageLine {\n    const char* symbol;\n    const char* area;\n"
             "    const char* treatment;\n};\n\n"
             "inline constexpr CoverageLine kCoverage[] = {\n")
    text += "".join(f'    {{"{e.symbol}", "{e.area}", "{e.treatment}"}},\n' for e in entries)
    return text + "};\n\n}  // namespace smt\n"


def signature_check(entries):
    text = BANNER + "// Fails to compile where a line of the table differs from cuda.h.\n"
    text += ("#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cudaProfiler.h>\n\n"
             "#include <type_traits>\n\n")
    for e in entries:
        if e.has_signature:
            for symbol in e.exports():
                text += (f"static_assert(std::is_same_v<decltype(&::{symbol}), CUresult "
                         f"(*)({e.signature()})>,\n"
                         f'              "{symbol}");\n')
    return text
