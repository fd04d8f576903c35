"""handlers.gen.cpp and served.gen.h: the server's half of the generated calls."""

from addresses import GENERATED
from listings import BANNER, header
from table import CLIENT_HANDLES, SERVER_HANDLES

CHARGED_OBJECTS = ("CUarray", "CUmipmappedArray")   # whose makers have memory=FUNCTION(...)
# methods of Call
RESOLVED = {"CUstream": "stream", "CUevent": "event", "CUfunction": "function", "CUmodule": "module"}


def declaration(p):
    return f"const StreamPointer& {p.name}" if p.direction == "launched" else p.declaration


def served(entries):
    text = header('"runtime/server/call.h"')
    text += "namespace smt::runtime::server::served {\n\n"
    text += "// Calls of which the server's half is not just the driver's function of that name.\n"
    for e in entries:
        if e.served:
            parameters = ', '.join(['Call& call'] + [declaration(p) for p in e.parameters])
            text += f"CUresult {e.symbol}({parameters});\n"
    return text + "\n}  // namespace smt::runtime::server::served\n"


def handlers(entries):
    travelling = [e for e in entries if e.travels]
    text = (BANNER + '#include "runtime/server/handlers/handler_support.h"\n#include "opcodes.gen.h"\n'
            '#include "served.gen.h"\n\n')
    text += "namespace smt::runtime::server {\n\nnamespace handlers {\n\n"
    text += "\n".join(handler(e) for e in travelling)
    text += "\nconstexpr Handler kHandlers[] = {\n"
    text += "".join(f"    {e.symbol},\n" for e in travelling)
    text += "};\n\n}  // namespace handlers\n\n"
    text += ("Handler generated_handler(uint16_t op) {\n"
             "    const uint32_t index = op - protocol::kFirstGeneratedOp;\n"
             "    return index < std::size(handlers::kHandlers) ? handlers::kHandlers[index] : nullptr;\n"
             "}\n\n")
    return text + "}  // namespace smt::runtime::server\n"


def handler(entry):
    """Decode, check, call, encode. Decoding touches nothing but the record."""
    returned = [p for p in entry.parameters if p.comes_back]
    lines = [f"CUresult {entry.symbol}(Call& call) {{"]
    if not entry.served:
        lines.append(f"    if (!call.driver.{entry.symbol}) return CUDA_ERROR_NOT_SUPPORTED;")
    if returned:
        lines.append("    const uint64_t given = call.in.scalar<uint64_t>();")
    for p in entry.parameters:
        lines += decode(p, entry.treatment == "real")
    lines.append("    if (!call.in.good()) return CUDA_ERROR_INVALID_VALUE;")
    for p in entry.parameters:
        lines += check(p)
    lines += uses(entry)
    lines += storage(entry, returned)
    for kind in ("CUevent", "CUfunction", "CUkernel", "CUmodule", "CUlibrary", "CUstream"):
        lines += [line for p in entry.parameters if p.type == kind for line in resolve(p)]
    arguments = ", ".join(argument(p, returned) for p in entry.parameters)
    if entry.served:
        arguments = ", ".join(["call"] + ([arguments] if arguments else []))
    callee = f"served::{entry.symbol}" if entry.served else f"call.driver.{entry.symbol}"
    if entry.charged:
        lines += ["    Charge charge;",
                  f"    if (CUresult status = call.session.memory().charge({entry.charged}, &charge); status "
                  "!= CUDA_SUCCESS) return status;"]
    lines += [f"    Charge held = call.session.memory().take_held(HandleKind::{p.handle_kind}, "
              f"(uint64_t){p.name});"
              for p in entry.parameters if holds(p)]
    lines.append(f"    CUresult result = {callee}({arguments});")
    if entry.charged:
        lines.append("    if (result == CUDA_ERROR_OUT_OF_MEMORY && free_idle_memory()) result = "
                     f"{callee}({arguments});")
    lines += [f"    if (result != CUDA_SUCCESS) call.session.memory().hold(HandleKind::{p.handle_kind}, "
              f"(uint64_t){p.name}, std::move(held));"
              for p in entry.parameters if holds(p)]
    lines += finish(entry, returned)
    return "\n".join(lines + ["    return result;", "}"]) + "\n"


def holds(p):
    """The object that is about to go holds memory which the generated handler counted."""
    return p.direction == "consume" and p.type in CHARGED_OBJECTS


def decode(p, of_client):
    name = p.name
    if p.type == "CUcontext":
        return []
    if p.type in CLIENT_HANDLES:
        return [f"    const auto {name}_id = call.in.scalar<uint32_t>();"]
    if p.direction == "addr":
        return [f"    const auto {name} = ({p.type})call.in.scalar<uint64_t>();"]
    if p.type == "CUdevice" and not of_client:
        return [f"    call.in.scalar<{p.base}>();",
                f"    const CUdevice {name} = call.session.device().device();"]
    if p.by_value:
        const = "" if p.handle_kind else "const "   # of an id the driver's handle is made
        return [f"    {const}auto {name} = call.in.scalar<{p.base}>();"]
    if p.direction == "str":
        return [f"    const char* {name} = call.in.string();"]
    if p.type.startswith("const CUlaunchConfig"):
        return [f"    const CUlaunchConfig {name} = unpack_launch_config(call.in);"]
    if p.direction == "in":
        return [f"    uint64_t {name}_count = 0;",
                f"    const {p.base}* {name} = call.in.array<{p.base}>({name}_count);"]
    if p.count:
        return [f"    const auto {name}_capacity = call.in.scalar<uint64_t>();"]
    if p.direction == "inout":
        return [f"    auto {name} = call.in.scalar<{p.base}>();"]
    return [f"    {p.base} {name}{{}};"]


def refuse(condition, error="CUDA_ERROR_INVALID_VALUE"):
    return f"    if ({condition}) return {error};"


def check(p):
    lines = []
    if p.direction == "str":
        lines.append(refuse(f"!{p.name}"))
    elif p.type.startswith("const CUlaunchConfig"):
        pass
    elif p.direction == "in":
        needed = f"static_cast<uint64_t>({p.count})" if p.count else "1"
        missing = f"{p.name}_count < {needed}"
        lines.append(refuse(f"{p.name} && {missing}" if p.optional else missing))
        if p.base in GENERATED:
            lines.append(refuse(f"{p.name} && !may_touch(call, *{p.name})"))
    elif p.direction == "touch":
        lines.append(refuse(f"!may_touch(call, {p.name}, {p.count})"))
    return lines


def uses(entry):
    """The objects of the session, checked and held until the call is over: from here on as the driver knows
    them."""
    lines = []
    for p in entry.parameters:
        if not p.handle_kind or p.comes_back:
            continue
        if p.direction == "in":
            lines.append(f"    call.uses.add(HandleKind::{p.handle_kind}, {p.name}, {p.name}_count);")
        else:
            verb = "take" if p.direction == "consume" else "add"
            lines.append(f"    call.uses.{verb}(HandleKind::{p.handle_kind}, {p.name});")
    if lines:
        lines.append("    if (CUresult status = call.uses.begin(); status != CUDA_SUCCESS) return status;")
    return lines


def storage(entry, returned):
    """Room for arrays that come back, never more than a reply holds."""
    arrays = [p for p in returned if p.count]
    lines = []
    if not arrays:
        return lines
    element = " + ".join(f"sizeof({p.base})" for p in arrays)
    lines.append(f"    constexpr uint64_t kMost = kArrayReplyBytes / ({element});")
    for counter in sorted({p.counted_by for p in arrays if p.counted_by}):
        lines.append(f"    const bool {counter}_cut = {counter} > kMost;")
        lines.append(f"    if ({counter}_cut) {counter} = kMost;")
    for p in arrays:
        if p.counted_by:
            lines.append(f"    const uint64_t {p.name}_room = std::min<uint64_t>({p.name}_capacity, "
                         f"{p.counted_by});")
            lines.append(refuse(f"given >> {returned.index(p)} & 1 && {p.name}_room < {p.counted_by}"))
        else:
            lines.append(f"    const uint64_t {p.name}_room = {p.name}_capacity;")
            lines.append(refuse(f"{p.name}_room > kMost || (given >> {returned.index(p)} & 1 && "
                                f"{p.name}_room != static_cast<uint64_t>({p.count}))"))
        lines.append(f"    std::vector<{p.base}> {p.name}({p.name}_room + 1);")
    return lines


def resolve(p):
    method = {"plain": "plain_stream", "launched": "launch_stream"}.get(p.direction, RESOLVED[p.type])
    held = "StreamPointer" if p.direction == "launched" else p.type
    return [f"    {held} {p.name} = nullptr;",
            f"    if (CUresult status = call.{method}({p.name}_id, &{p.name}); status != CUDA_SUCCESS) "
            "return status;"]


def argument(p, returned):
    if p.type == "CUcontext":
        return "call.context()"
    if p.comes_back:
        given = f"given >> {returned.index(p)} & 1"
        return f"{given} ? {p.name}.data() : nullptr" if p.count else f"{given} ? &{p.name} : nullptr"
    if p.type.startswith("const CUlaunchConfig"):
        return f"&{p.name}"
    if p.direction == "in" and "const" not in p.type:
        return f"const_cast<{p.base}*>({p.name})"
    return p.name


def finish(entry, returned):
    lines = []
    success = []
    for p in entry.parameters:
        if p.comes_back and p.handle_kind:
            if p.count:
                success.append(f"for (uint64_t i = 0; i < {filled(p)}; ++i) "
                               f"{named(entry, p, f'{p.name}[i]')};")
            elif p.direction != "out" or not p.always:
                if entry.charged and entry.gives(p):
                    success.append(f"if ({p.name}) call.session.memory().hold(HandleKind::{p.handle_kind}, "
                                   f"(uint64_t){p.name}, std::move(charge));")
                success.append(f"if ({p.name}) {named(entry, p, p.name)};")
    if success:
        lines += ["    if (result == CUDA_SUCCESS) {"] + ["        " + s for s in success] + ["    }"]
    if not returned:
        return lines
    for counter in sorted({p.counted_by for p in returned if p.counted_by}):
        lines.append(f"    if (result == CUDA_SUCCESS && {counter}_cut && {counter} >= kMost) result = "
                     "CUDA_ERROR_OUT_OF_MEMORY;")
    if not any(p.always for p in returned):
        lines.append("    if (result != CUDA_SUCCESS) return result;")
    for p in returned:
        if p.count:
            lines.append(f"    call.out.array(given >> {returned.index(p)} & 1 ? {p.name}.data() : nullptr, "
                         f"{filled(p)});")
        else:
            lines.append(f"    call.out.scalar({p.name});")
    return lines


def named(entry, p, value):
    """The driver's handle becomes an id: a new one, or that of what belongs to another object or is known."""
    parent = entry.parent_of(p)
    if parent:
        kind = SERVER_HANDLES.get(parent.type, "kModule")
        return f"call.lend(HandleKind::{p.handle_kind}, {value}, HandleKind::{kind}, {parent.name})"
    if p.direction == "lend" and p.base != "CUmemoryPool":
        return f"result = call.known(HandleKind::{p.handle_kind}, {value})"
    return f"call.{'lend' if p.direction == 'lend' else 'adopt'}(HandleKind::{p.handle_kind}, {value})"


def filled(p):
    return f"std::min<uint64_t>({p.name}_room, {p.counted_by})" if p.counted_by else f"{p.name}_room"
