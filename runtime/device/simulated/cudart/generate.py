#!/usr/bin/env python3
"""Turns the table of runtime functions (api/*.api) into the generated sources. The grammar is in README.md.

    generate.py OUTPUT_FOLDER   writes the files below, those that changed only
    generate.py --list          prints their names
    generate.py --exports [MAJOR]   prints every symbol that the runtime of CUDA MAJOR (13) exports
    generate.py --treatments    prints every function and how it is treated
"""

import copy
import functools
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).parent
BANNER = "// Generated from runtime/device/simulated/cudart/api/ by generate.py. Do not edit.\n"
# By CUDA's major version: the library's name and symbol version, and what cudaRuntimeGetVersion says.
LIBRARIES = {13: ("libcudart.so.13", "CUDART_VERSION"), 12: ("libcudart.so.12", "12090"),
             11: ("libcudart.so.11.0", "11080")}

TREATMENTS = ("driver", "written", "ordered", "bare", "unsupported")
LINE = re.compile(r"(?P<treatment>\w+)(?P<early> early)? +(?P<returns>[\w ]+[ "
                  r"*]+)??(?P<symbol>(?:__)?cuda\w+)"
                  r"(?:\((?P<parameters>.*?)\))?(?: (?P<twin>ptds|ptsz))?(?: = "
                  r"(?P<driver>cu\w+)(?:\((?P<arguments>.*)\))?)?$")
CLASSES = {"kernel": "RegisteredKernel", "symbol": "Symbol"}   # of what a parameter is resolved to
PARAMETER = re.compile(r"(?P<resolved>kernel |symbol )?(?P<type>.*?)(?P<name>\w+)$")


class TableError(Exception):
    pass


class Parameter:
    def __init__(self, text):
        match = PARAMETER.match(text)
        self.resolved, self.name = (match["resolved"] or "").strip(), match["name"]
        self.type = match["type"].strip()
        self.declaration = match["type"] + match["name"]
        self.is_stream = self.type == "cudaStream_t"

    def written(self):
        """As the hand-written function takes it."""
        return f"const {CLASSES[self.resolved]}& {self.name}" if self.resolved else self.declaration


class Entry:
    def __init__(self, area, line):
        match = LINE.match(line)
        if not match or match["treatment"] not in TREATMENTS:
            raise TableError(f"cannot read line '{line}'")
        self.area, self.treatment, self.symbol, self.twin = (area, match["treatment"],
                                                             match["symbol"], match["twin"])
        self.name = self.symbol        # of the function in smt::cudart
        self.labelled = False          # the header of CUDA 13 has another function of that name, or none
        self.early = bool(match["early"])
        self.returns = (match["returns"] or "cudaError_t ").strip()
        self.has_signature = match["parameters"] is not None
        listed = (match["parameters"] or "").strip()
        self.parameters = [Parameter(p.strip()) for p in listed.split(",")] if listed else []
        self.driver = match["driver"] or "cu" + self.symbol[len("cuda"):]
        self.arguments = match["arguments"]
        if not self.has_signature and self.treatment != "unsupported":
            raise TableError(f"only unsupported functions may lack a signature: '{line}'")

    def exports(self):
        return [self.symbol] + ([f"{self.symbol}_{self.twin}"] if self.twin else [])

    def signature(self):
        return ", ".join(p.declaration for p in self.parameters)

    @property
    def takes_default_stream(self):
        """Its twins differ, but no parameter could carry the difference."""
        return bool(self.twin) and not any(p.is_stream for p in self.parameters)

    @property
    def written_name(self):
        return self.name.removesuffix("Async") if self.treatment == "ordered" else self.name

    def written_signature(self):
        if self.treatment == "ordered":
            return ", ".join([p.written() for p in self.parameters if not p.is_stream] + ["Order order"])
        listed = [p.written() for p in self.parameters]
        return ", ".join(listed + (["CUstream default_stream"] if self.takes_default_stream else []))


def lines_of(path):
    return [line.strip() for line in path.read_text().splitlines() if line.strip() and line[0] != "#"]


def checked(entries):
    symbols = [s for e in entries for s in e.exports()]
    twice = {s for s in symbols if symbols.count(s) > 1}
    if twice:
        raise TableError("listed twice: " + ", ".join(sorted(twice)))
    return entries


def older(entries, path):
    """The table of an older runtime: ENTRIES, those of the next one, as the file at PATH changes them."""
    later = {entry.symbol: entry for entry in entries}
    made, seen = dict(later), set()
    for line in lines_of(path):
        word, _, rest = line.partition(" ")
        symbols = rest.split() if word == "gone" else [LINE.match(line)["symbol"] if word in TREATMENTS
                                                       else rest.split(" = ")[0]]
        if seen.intersection(symbols):
            raise TableError(f"{path.name} has two lines for {', '.join(symbols)}")
        seen.update(symbols)
        try:
            if word == "gone":
                for symbol in symbols:
                    del made[symbol]
                continue
            if word == "same":
                entry = copy.copy(later[rest.split(" = ")[1]])
                entry.symbol = symbols[0]
            else:
                entry = Entry("older", line)
        except KeyError as missing:
            raise TableError(f"{path.name}: the next runtime has no {missing}: '{line}'") from missing
        entry.labelled = True
        made[entry.symbol] = entry
    return checked(list(made.values()))


def read():
    """The tables by CUDA's major version, the newest first."""
    tables = {13: checked([Entry(path.stem, line) for path in sorted((FOLDER / "api").glob("*.api"))
                           for line in lines_of(path)])}
    for major in (12, 11):
        tables[major] = older(tables[major + 1], FOLDER / "older" / f"{major}.api")
    return tables


def covered(tables):
    """One entry for each symbol of any runtime; those that CUDA 13 lacks come last."""
    found = {}
    for entries in tables.values():
        for entry in entries:
            found.setdefault(entry.symbol, entry)
    return list(found.values())


def argument(parameter, default, mapped):
    if parameter.is_stream:
        return f"or_default({parameter.name}, {default})"
    if parameter.resolved:
        return f"{parameter.name}_found" + (".function" if mapped else "")
    return parameter.name


def driver_call(entry, default):
    if entry.arguments is None:
        return ", ".join(f"as_driver({argument(p, default, True)})" for p in entry.parameters)
    by_name = {p.name: p for p in entry.parameters}
    listed = []
    for text in re.split(r",(?![^(]*\))", entry.arguments):
        text = text.strip()
        if text in by_name:
            text = f"as_driver({argument(by_name[text], default, True)})"
        else:   # an expression, in which a symbol is what was found
            for p in entry.parameters:
                if p.resolved:
                    text = re.sub(rf"\b{p.name}\b", f"{p.name}_found", text)
        if text:
            listed.append(text)
    return ", ".join(listed)


def body(entry, symbol, index):
    default = "CU_STREAM_PER_THREAD" if entry.twin and symbol != entry.symbol else "CU_STREAM_LEGACY"
    if entry.treatment == "unsupported":
        return [f"return finish(unsupported({index}));"]
    if entry.treatment == "bare":
        passed = [argument(p, default, False) for p in entry.parameters]
        return [f"return smt::cudart::{entry.name}({', '.join(passed)});"]
    lines = [f"if (cudaError_t failed = {'begin_early' if entry.early else 'begin'}()) return "
             "finish(failed);"]
    for p in entry.parameters:
        if p.resolved:
            lines += [f"{CLASSES[p.resolved]} {p.name}_found{{}};",
                      f"if (cudaError_t failed = find_{p.resolved}({p.name}, {p.name}_found)) return "
                      "finish(failed);"]
    if entry.treatment == "driver":
        return (lines +
                [f"return finish(from_driver(driver().{entry.driver}({driver_call(entry, default)})));"])
    if entry.treatment == "ordered":
        streams = [p for p in entry.parameters if p.is_stream]
        order = (f"Order{{{argument(streams[0], default, False)}, false}}" if streams
                 else f"Order{{{default}, true}}")
        passed = [argument(p, default, False) for p in entry.parameters if not p.is_stream] + [order]
    else:
        passed = [argument(p, default, False) for p in entry.parameters]
        passed += [default] if entry.takes_default_stream else []
    return lines + [f"return finish(smt::cudart::{entry.written_name}({', '.join(passed)}));"]


def calls(tables, major):
    text = (BANNER + "// Every exported function: is there a device, what do its handles mean, whose work is "
            "it, and what\n"
            "// became of it (the thread's last error).\n#pragma GCC visibility push(default)\n"
            "#include <cuda_runtime_api.h>\n\n#include <cuda_profiler_api.h>\n#pragma GCC visibility pop\n\n"
            '#include "cudart_written.gen.h"\n#include "runtime/device/simulated/cudart/convert.h"\n'
            '#include "runtime/device/simulated/cudart/copy_plan.h"\n'
            '#include "runtime/device/simulated/cudart/coverage.h"\n\n'
            "#define EXPORT __attribute__((visibility(\"default\")))\n\nusing namespace smt::cudart;\n\n"
            f"const int smt::cudart::kRuntimeVersion = {LIBRARIES[major][1]};\n\n"
            "extern \"C\" {\n\n")
    numbers = {entry.symbol: index for index, entry in enumerate(covered(tables))}
    for entry in tables[major]:
        for symbol in entry.exports():
            lines = "".join(f"    {line}\n" for line in body(entry, symbol, numbers[entry.symbol]))
            unused = entry.treatment == "unsupported"
            signature = ", ".join(p.type for p in entry.parameters) if unused else entry.signature()
            function = symbol
            if entry.labelled:   # a declaration, since only that can give the symbol another name
                function = f"smt_{symbol}"
                text += f"EXPORT {entry.returns} {function}({signature}) __asm__(\"{symbol}\");\n"
            text += f"EXPORT {entry.returns} {function}({signature}) {{\n{lines}}}\n"
    return text + "\n}\n"


def written(tables):
    text = (BANNER + "// What is written by hand, one file an area. Streams are never null.\n#pragma once\n\n"
            "#include <cuda_runtime_api.h>\n\n#include \"runtime/device/simulated/cudart/older.h\"\n"
            "#include \"runtime/device/simulated/cudart/registry.h\"\n"
            "#include \"runtime/device/simulated/cudart/runtime.h\"\n\n"
            "namespace smt::cudart {\n\n")
    declarations = {f"{e.returns} {e.written_name}({e.written_signature()});\n": None
                    for entries in tables.values() for e in entries
                    if e.treatment in ("written", "ordered", "bare")}
    return text + "".join(declarations) + "\n}  // namespace smt::cudart\n"


def coverage(tables):
    text = (BANNER + "// Every function of the runtime and how it is treated. Its place is its number on "
            "the wire.\n"
            "#pragma once\n\n#include \"coverage.gen.h\"\n\nnamespace smt {\n\n"
            "inline constexpr CoverageLine kRuntimeCoverage[] = {\n")
    text += "".join(f'    {{"{e.symbol}", "{e.area}", "{e.treatment}"}},\n'
                    for e in covered(tables))
    return text + "};\n\n}  // namespace smt\n"


def exports_map(tables, major):
    symbols = sorted(s for e in tables[major] for s in e.exports())
    return (BANNER.replace("// ", "/* ").rstrip("\n") + f" */\n{LIBRARIES[major][0]} {{\n    global:\n" +
            "".join(f"        {s};\n" for s in symbols) + "    local: *;\n};\n")


def signature_check(tables):
    text = (BANNER + "// Compiles to nothing: it is the compiler's comparison of the table with NVIDIA's "
            "headers.\n"
            "#include <cuda_runtime_api.h>\n\n#include <cuda_profiler_api.h>\n\n#include <type_traits>\n\n")
    for e in tables[13]:
        if e.has_signature and not e.symbol.startswith("__"):
            for symbol in e.exports():
                text += (f"static_assert(std::is_same_v<decltype(&::{symbol}), {e.returns} "
                         f"(*)({e.signature()})>,\n"
                         f"              \"{symbol} is another function in cuda_runtime_api.h\");\n")
    return text


FILES = {
    "cudart_written.gen.h": written,
    "cudart_coverage.gen.h": coverage,
    "cudart_signature_check.gen.cpp": signature_check,
    **{f"cudart_calls_{major}.gen.cpp": functools.partial(calls, major=major) for major in LIBRARIES},
    **{f"cudart_exports_{major}.gen.map": functools.partial(exports_map, major=major) for major in LIBRARIES},
}


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 2
    if arguments[0] == "--list":
        print("\n".join(FILES))
        return 0
    tables = read()
    if arguments[0] == "--exports":
        major = int(arguments[1]) if len(arguments) > 1 else 13
        print("\n".join(sorted(s for e in tables[major] for s in e.exports())))
        return 0
    if arguments[0] == "--treatments":
        print("\n".join(f"{e.symbol} {e.treatment}" for e in tables[13]))
        return 0
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        path, text = folder / name, make(tables)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
