#include "runtime/server/takeover/launch_log.h"

#include <cstring>

namespace smt::runtime::server {

using protocol::Op;

namespace {

bool only_asks(Op op) {
    switch (op) {
        case Op::kOpenStaging:
        case Op::kEventCreate:
        case Op::kEventSynchronize:
        case Op::kEventElapsed:
        case Op::kStreamCreate:
        case Op::kStreamSynchronize:
        case Op::kStreamQuery:
        case Op::kContextSynchronize:
        case Op::kMemInfo:
        case Op::kGetFunction:
        case Op::kFetchOutput:
        case Op::kUnsupported:
            return true;
        default:
            return false;
    }
}

template <typename Record>
bool take_struct(const std::string& payload, Record* record) {
    if (payload.size() < sizeof *record) return false;
    std::memcpy(record, payload.data(), sizeof *record);
    return true;
}

// It writes no device memory.
bool copies_to_host(Op op, const std::string& payload) {
    protocol::Copy copy;
    protocol::CopySlot slot;
    if (op == Op::kCopy) return take_struct(payload, &copy) && copy.to.place == protocol::Place::kHost;
    return op == Op::kCopySlot && take_struct(payload, &slot) && slot.to_device == 0;
}

bool is_awaited(Op op, const std::string& payload) {
    protocol::Copy copy;
    return op == Op::kCopy && take_struct(payload, &copy) && copy.answer == protocol::CopyAnswer::kDone;
}

}  // namespace

void LaunchLog::note(Op op, bool done, bool fatal, std::pair<uint32_t, uint64_t> use, std::string record) {
    if (only_asks(op)) return;
    if (op == Op::kLaunch || op == Op::kEventRecord) {
        if (done) add({op, use.first, use.second, false, std::move(record)});
        return;
    }
    if (copies_to_host(op, record)) {
        if (fatal) return;
        if (done && is_awaited(op, record)) add({op, use.first, use.second, false, {}});
        return;  // one under way is not in the log, so nothing in front of it is executed again
    }
    forget();
}

}  // namespace smt::runtime::server
