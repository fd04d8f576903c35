"""stubs.gen.cpp: every exported symbol, and the client's half of the generated calls."""

import re

from listings import BANNER
from table import CLIENT_HANDLES, SERVER_HANDLES

HEAD = BANNER + """#define __CUDA_API_VERSION_INTERNAL
#include "interpose/entry/stub_support.h"

#include "driver.gen.h"
#include "driver_api.gen.h"
#include "interpose/driver/capture.h"
#include "interpose/driver/coverage.h"
#include "interpose/driver/device.h"
#include "interpose/driver/order.h"
#include "interpose/driver/place.h"
#include "interpose/driver/queries.h"
#include "interpose/process/real_driver.h"
#include "interpose/process/state.h"
#include "interpose/transport/answers.h"
#include "interpose/transport/call_timer.h"
#include "interpose/transport/connect.h"
#include "opcodes.gen.h"

"""


def stubs(entries):
    text = HEAD + "namespace smt::interpose::driver {\n\n"
    text += "\n".join(remote_body(e) for e in entries if e.travels)
    text += ("\n}  // namespace smt::interpose::driver\n\nusing namespace smt::interpose;\n\n"
             "extern \"C\" {\n\n")
    for index, e in enumerate(entries):
        text += "".join(stub(e, symbol, index) for symbol in e.exports())
    return text + "\n}  // extern \"C\"\n"


def stub(entry, symbol, index):
    """One exported function."""
    if not entry.has_signature:
        return (f"SMT_EXPORT CUresult {symbol}(SMT_ANY_PARAMETERS) {{\n"
                f"    if (native()) return forward_any(real_driver()->{symbol}, SMT_ANY_ARGUMENTS);\n"
                f"    return unsupported({index});\n}}\n")
    plain = ", ".join(p.name for p in entry.parameters)
    forward = f"forward({', '.join([f'real_driver()->{symbol}'] + [p.name for p in entry.parameters])})"
    lines = [f"SMT_EXPORT CUresult {symbol}({entry.signature()}) {{"]
    if entry.treatment == "unsupported":
        typed = f"reinterpret_cast<decltype(&::{symbol})>(real_driver()->{symbol})"
        arguments = ", ".join([typed] + ([plain] if plain else []))
        lines += [f"    if (native()) return forward({arguments});", f"    return unsupported({index});", "}"]
        return "\n".join(lines) + "\n"
    if entry.treatment in ("remote", "async"):
        lines += ["    if (!connected()) [[unlikely]] {",
                  "        const CUresult status = connect();",
                  f"        if (native()) return {forward};",
                  "        if (status != CUDA_SUCCESS) return status;",
                  "    }"]
    elif entry.treatment != "early":
        lines += ["    if (!ready()) [[unlikely]] {",
                  f"        if (native()) return {forward};",
                  "        return not_ready();",
                  "    }"]
    answer = f"driver::{entry.target or entry.symbol}({arguments_of(entry, symbol)})"
    if entry.adjusted:
        answer = f"adjust::{entry.symbol}({answer}, {arguments_of(entry, symbol)})"
    if entry.treatment == "remote":
        answer = f"unless_refused({answer}, {index})"
    lines += forbidden_in_captures(entry, symbol)
    lines += elsewhere(entry, index, answer)
    # The timer stands apart, so that a call that is not timed ends in a jump.
    lines += ["    if (times_calls.load(std::memory_order_relaxed)) [[unlikely]] {",
              f"        const CallTimer timer({index + 1});", f"        return {answer};", "    }",
              f"    return {answer};", "}"]
    return "\n".join(lines) + "\n"


# Calls with a stream that enqueue nothing there and do not wait for it.
NO_USE_OF_STREAM = re.compile(r"cuStream(Get|IsCapturing|Destroy|(Begin|End|Update)Capture)|"
                              r"cuGraphInstantiate")
# Unsafe during a capture, as CUDA calls it, beside synchronous copies and cuEventQuery (event.cpp).
UNSAFE_IN_CAPTURES = ("cuMemAlloc_v2", "cuMemAllocPitch_v2")


def forbidden_in_captures(entry, symbol):
    """What captures under way forbid (interpose/driver/capture.h)."""
    target = entry.target or entry.symbol
    default = "CU_STREAM_PER_THREAD" if symbol != entry.symbol else "CU_STREAM_LEGACY"
    checks = []
    streams = [p.name for p in entry.parameters if p.type == "CUstream" and p.direction != "plain"]
    if target == "cuLaunchKernelEx":
        streams = ["(config ? config->hStream : nullptr)"]
    if entry.twin and not NO_USE_OF_STREAM.match(target):
        checks = [f"check_legacy_use(canonical({name}, {default}))" for name in streams]
        if entry.takes_default_stream and not streams:
            checks = [f"check_legacy_use({default})"]
    if target in UNSAFE_IN_CAPTURES or entry.takes_default_stream and target.startswith("cuMemcpy"):
        checks.append("check_unsafe_call()")
    if not checks:
        return []
    lines = ["    if (captures_under_way.load(std::memory_order_relaxed) != 0) [[unlikely]] {"]
    lines += [f"        if (const CUresult status = {check}; status != CUDA_SUCCESS) return status;"
              for check in checks]
    return lines + ["    }"]


# Calls that find their session themselves: they are about devices and contexts, or about any memory.
FIND_THEIR_PLACE = ("init", "context", "device", "pointer")
HOST_ADDRESSES = {"cuMemFreeHost": "p", "cuMemHostUnregister": "p", "cuMemHostGetFlags": "p",
                  "cuMemHostGetDevicePointer_v2": "p", "cuMemRetainAllocationHandle": "addr"}


def places(entry):
    """Expressions for a call's session, the first that is not null (interpose/driver/place.h)."""
    by_value = [p for p in entry.parameters if "*" not in p.type]
    found = [f"place_of({p.name})" for kind in ("CUstream", "CUevent") for p in by_value if p.type == kind]
    streamless = not entry.twin
    if streamless:
        found += [f"place_of({p.name})" for p in by_value if p.type in ("CUmodule", "CUfunction")]
    found += [f"place_of_object(uint64_t({p.name}))" for p in by_value if p.type in SERVER_HANDLES and
              p.type not in ("CUtexObject", "CUsurfObject", "CUmemoryPool")]
    if entry.addresses != "copy":
        found += [f"place_of_memory({p.name})" for p in by_value if p.type == "CUdeviceptr"]
    if entry.symbol in HOST_ADDRESSES:
        found.append(f"place_of_memory(uint64_t({HOST_ADDRESSES[entry.symbol]}))")
    return found


def elsewhere(entry, index, answer):
    """The call where it may be for another session than the thread's."""
    if entry.treatment in ("early", "real") or entry.area in FIND_THEIR_PLACE:
        return []
    found = places(entry)
    devices = [p.name for p in entry.parameters if p.type == "CUdevice" and entry.treatment == "remote"]
    twins = [p.name for p in entry.parameters if p.type in CLIENT_HANDLES[2:]]
    if not found and not devices and not twins:
        return []
    condition = "several_sessions()"
    if devices:
        condition += f" || this_session().device() != {devices[0]}"
    lines = [f"    if ({condition}) [[unlikely]] {{", f"        const CallTimer timer({index + 1});"]
    if devices:
        lines += [f"        Session* const place = place_of_device({devices[0]});",
                  "        if (!place) return CUDA_ERROR_INVALID_DEVICE;",
                  "        const InSession in(place);"]
    elif found:
        lines.append(f"        const InSession in(first_place({', '.join(found)}));")
    lines += [f"        {name} = twin_here({name});" for name in twins]
    return lines + [f"        return {answer};", "    }"]


def arguments_of(entry, symbol):
    default = "CU_STREAM_PER_THREAD" if symbol != entry.symbol else "CU_STREAM_LEGACY"
    listed = [f"canonical({p.name}, {default})" if entry.twin and p.type == "CUstream" else p.name
              for p in entry.parameters]
    if entry.takes_default_stream:
        listed.append(default)
    return ", ".join(listed)


def remote_body(entry):
    """The client's half: order, pack, send, unpack."""
    lines = [f"CUresult {entry.symbol}({entry.signature(extra=True)}) {{"]
    if entry.treatment == "real":
        names = ", ".join(p.name for p in entry.parameters)
        lines += [f"    if (const DriverApi* local = query_driver(); local && local->{entry.symbol})",
                  f"        return local->{entry.symbol}({names});",
                  "    if (!connected()) {",
                  "        if (const CUresult status = connect(); status != CUDA_SUCCESS) return status;",
                  "    }"]
    lines += resolve_handles(entry)
    bounds, packs = [], []
    returned = [p for p in entry.parameters if p.comes_back]
    if returned:
        bounds.append("scalar_bound<uint64_t>()")
        bits = " | ".join(f"(uint64_t{{{p.name} != nullptr}} << {i})" for i, p in enumerate(returned))
        packs.append(f"call.in<uint64_t>({bits});")
    for p in entry.parameters:
        bound, pack = packing(p)
        bounds += [bound] if bound else []
        packs += [pack] if pack else []
    lines += [f"    const uint64_t bound = {' + '.join(bounds) if bounds else '0'};",
              "    if (bound > protocol::kMaxRecordBytes) return CUDA_ERROR_INVALID_VALUE;",
              f"    RemoteCall call(static_cast<uint16_t>(protocol::GeneratedOp::{entry.op}), bound);",
              "    if (!call.open()) return call.status();"]
    lines += [f"    {pack}" for pack in packs]
    send = "post" if entry.treatment == "async" else "recall_or_wait" if entry.recalled else "wait"
    lines.append(f"    const CUresult result = call.{send}();")
    if entry.forgets:
        lines.append("    forget_answers();")
    lines += [f"    {unpacking(p)}" for p in returned]
    lines += [f"    note_use({used(p)});" for p in entry.parameters if p.type in ("CUstream", "CUevent")]
    lines += [f"    if (result == CUDA_SUCCESS) {p.name}_object->by_graph.store(1, "
              "std::memory_order_relaxed);"
              for p in entry.parameters if p.direction == "records"]
    return "\n".join(lines + ["    return result;", "}"]) + "\n"


def used(p):
    return p.name if p.type == "CUstream" else f"*{p.name}_object"


def resolve_handles(entry):
    """The client's own objects behind the handles, and the order with other threads' lanes."""
    lines, ordered = [f"    (void){p.name};" for p in entry.parameters if p.type == "CUcontext"], []
    for p in entry.parameters:
        if p.type == "CUstream":
            lines += [f"    uint32_t {p.name}_id = 0;",
                      f"    if (!stream_ref({p.name}, {p.name}_id)) return CUDA_ERROR_INVALID_HANDLE;"]
        elif p.type in CLIENT_HANDLES:
            find = {"CUevent": "event", "CUfunction": "function", "CUkernel": "function"}.get(p.type, "image")
            lines += [f"    auto* const {p.name}_object = find_{find}({p.name});",
                      f"    if (!{p.name}_object || !is_here(*{p.name}_object)) "
                      "return CUDA_ERROR_INVALID_HANDLE;"]
        elif p.type.startswith("const CUlaunchConfig"):
            lines.append(f"    if (!{p.name}) return CUDA_ERROR_INVALID_VALUE;")
        elif p.type == "CUhostFn":
            lines.append("    if (const CUresult status = start_callback_thread(); status != CUDA_SUCCESS) "
                         "return status;")
        if p.type in ("CUstream", "CUevent"):
            ordered.append(used(p))
        if p.direction == "consume":
            ordered.append(None)
    for what in ordered:
        call = f"order_after({what})" if what else "order_after_all()"
        lines.append(f"    if (const CUresult status = {call}; status != CUDA_SUCCESS) return status;")
    return lines


def packing(p):
    """(bound of the bytes, statement that packs) of one parameter."""
    if p.type == "CUcontext":
        return None, None
    if p.type in CLIENT_HANDLES:
        number = {"CUstream": f"{p.name}_id", "CUevent": f"{p.name}_object->index"}.get(
            p.type, f"{p.name}_object->id")
        return "scalar_bound<uint32_t>()", f"call.in<uint32_t>({number});"
    if p.direction == "addr":
        return "scalar_bound<uint64_t>()", f"call.in(reinterpret_cast<uint64_t>({p.name}));"
    if p.by_value:
        return f"scalar_bound<{p.base}>()", f"call.in<{p.base}>({p.name});"
    if p.direction == "str":
        return f"string_bound({p.name})", f"call.in_string({p.name});"
    if p.type.startswith("const CUlaunchConfig"):
        return f"launch_config_bound(*{p.name})", f"pack_launch_config(call, *{p.name});"
    if p.direction == "in":
        pointer = f"static_cast<const {p.base}*>({p.name})"
        count = p.count or "1"
        return f"array_bound<{p.base}>({p.name}, {count})", f"call.in_array({pointer}, {count});"
    if p.count:
        return "scalar_bound<uint64_t>()", f"call.in<uint64_t>({capacity(p)});"
    if p.direction == "inout":
        return f"scalar_bound<{p.base}>()", f"call.in<{p.base}>({p.name} ? *{p.name} : {p.base}{{}});"
    return None, None


def capacity(p):
    if p.counted_by:
        return f"{p.name} && {p.counted_by} ? *{p.counted_by} : 0"
    return f"{p.name} ? {p.count} : 0"


def unpacking(p):
    pointer = f"static_cast<{p.base}*>({p.name})"
    if p.count:
        # CUDA says so of lists of nodes, and not of the data of edges beside them.
        call = "out_list" if p.direction == "lend" and p.counted_by else "out_array"
        return f"call.{call}({pointer}, {capacity(p)});"
    return f"call.out({pointer});"
