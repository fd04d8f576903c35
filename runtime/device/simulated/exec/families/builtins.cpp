#include "runtime/device/simulated/exec/families/builtins.h"

#include <fmt/format.h>

#include "runtime/device/simulated/exec/spaces.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {
namespace {

constexpr size_t kLongestText = 64 << 10;

uint64_t argument(Execution& x, const Place& place, int lane) {
    uint64_t value = 0;
    const uint32_t bytes = std::min<uint32_t>(place.bytes, 8);
    if (place.local)
        std::memcpy(&value, x.warp->local.at(lane, x.group->frame->variables + place.offset), bytes);
    else
        std::memcpy(&value, x.at<std::byte>(place.slot) + size_t{place.bytes} * static_cast<size_t>(lane),
                    bytes);
    return value;
}

void give(Execution& x, const Call& call, int lane, uint64_t value) {
    if (call.results.empty()) return;
    const Place& place = call.results[0];
    const uint32_t bytes = std::min<uint32_t>(place.bytes, 8);
    if (place.local)
        std::memcpy(x.warp->local.at(lane, x.group->frame->variables + place.offset), &value, bytes);
    else if (place.slot != kSink)
        std::memcpy(x.at<std::byte>(place.slot) + size_t{place.bytes} * static_cast<size_t>(lane), &value,
                    bytes);
}

bool read_text(Execution& x, int lane, uint64_t address, std::string* text) {
    for (; text->size() < kLongestText; ++address) {
        const std::byte* one = x.cta->generic_at(x, lane, address, 1);
        if (one == nullptr) return false;
        if (*one == std::byte{0}) return true;
        text->push_back(static_cast<char>(*one));
    }
    return true;
}

// vprintf(format, arguments): the arguments lie one after another, each aligned to its size.
void print(Execution& x, const Call& call, int lane) {
    std::string format;
    std::string text;
    if (!read_text(x, lane, argument(x, call.arguments[0], lane), &format)) return;
    uint64_t at = argument(x, call.arguments[1], lane);
    PrintSource source;
    source.next = [&](uint32_t bytes, uint64_t* value) {
        at = (at + bytes - 1) / bytes * bytes;
        const std::byte* from = x.cta->generic_at(x, lane, at, bytes);
        if (from == nullptr) return false;
        *value = 0;
        std::memcpy(value, from, bytes);
        at += bytes;
        return true;
    };
    source.text_at = [&](uint64_t address, std::string* out) { return read_text(x, lane, address, out); };
    if (!format_print(format, source, &text)) return;
    x.cta->environment.print(text);
    give(x, call, lane, text.size());
}

void assertion(Execution& x, const Call& call, int lane) {
    std::string what, file, function;
    if (call.arguments.size() < 4)
        return x.cta->fail(x, Fault::Kind::kAssert, lane, Space::kNone, 0, 0, "assertion failed");
    if (!read_text(x, lane, argument(x, call.arguments[0], lane), &what) ||
        !read_text(x, lane, argument(x, call.arguments[1], lane), &file) ||
        !read_text(x, lane, argument(x, call.arguments[3], lane), &function))
        return;
    const auto line = static_cast<uint32_t>(argument(x, call.arguments[2], lane));
    const Dim3 thread = x.cta->thread_index(*x.warp, lane);
    const Dim3& block = x.cta->index;
    x.cta->environment.print(
        fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.\n", file, line,
                    function, block.x, block.y, block.z, thread.x, thread.y, thread.z, what));
    x.cta->fail(x, Fault::Kind::kAssert, lane, Space::kNone, 0, 0,
                fmt::format("assertion `{}` failed", what));
}

}  // namespace

void run_builtin(Execution& x, Builtin builtin, const Call& call) {
    for_lanes(x.mask, [&](int lane) {
        if (x.cta->fault) return;
        switch (builtin) {
            case Builtin::kPrintf:
                return print(x, call, lane);
            case Builtin::kAssert:
                return assertion(x, call, lane);
            case Builtin::kMalloc:
                return give(x, call, lane,
                            x.cta->environment.heap_allocate(argument(x, call.arguments[0], lane)));
            case Builtin::kFree: {
                const uint64_t address = argument(x, call.arguments[0], lane);
                if (address != 0 && !x.cta->environment.heap_free(address))
                    x.cta->fail(x, Fault::Kind::kHeap, lane, Space::kNone, 0, 0,
                                fmt::format("free of {:#x}, which malloc did not give", address));
                return;
            }
            case Builtin::kNone:
                return;
        }
    });
}

}  // namespace smt::runtime::device::simulated
