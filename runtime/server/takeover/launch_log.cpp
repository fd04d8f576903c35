#include "runtime/server/takeover/launch_log.h"

#include <cstring>

namespace smt::runtime::server {

using protocol::Op;

namespace {

bool only_asks(Op op) {
    switch (op) {
        case Op::kOpenStaging:
        case Op::kAwaitSlot:
        case Op::kNewThread:
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
bool take_struct(std::string_view payload, Record* record) {
    if (payload.size() < sizeof *record) return false;
    std::memcpy(record, payload.data(), sizeof *record);
    return true;
}

// It writes no device memory.
bool copies_to_host(Op op, std::string_view payload) {
    protocol::Copy copy;
    protocol::CopySlot slot;
    if (op == Op::kCopy) return take_struct(payload, &copy) && copy.to.place == protocol::Place::kHost;
    return op == Op::kCopySlot && take_struct(payload, &slot) && slot.to_device == 0;
}

bool is_awaited(Op op, std::string_view payload) {
    protocol::Copy copy;
    return op == Op::kCopy && take_struct(payload, &copy) && copy.answer == protocol::CopyAnswer::kDone;
}

}  // namespace

void LaunchLog::add(Op op, std::pair<uint32_t, uint64_t> use, std::string_view record) {
    std::lock_guard lock(mutex_);
    if (ring_.size() < kMost && count_ == ring_.size()) ring_.emplace_back();
    Entry& entry = ring_[(first_ + count_) % kMost];
    entry.record.assign(record);  // may have no memory
    entry.op = op;
    entry.stream = use.first;
    entry.number = use.second;
    entry.again = again_;
    if (count_ < ring_.size())
        ++count_;
    else
        first_ = (first_ + 1) % kMost;
}

void LaunchLog::forget() {
    std::lock_guard lock(mutex_);
    first_ = count_ = 0;
}

std::vector<LaunchLog::Entry> LaunchLog::all() const {
    std::lock_guard lock(mutex_);
    std::vector<Entry> all;
    for (size_t i = 0; i < count_; ++i) all.push_back(ring_[(first_ + i) % kMost]);
    return all;
}

void LaunchLog::note(Op op, bool done, bool fatal, std::pair<uint32_t, uint64_t> use,
                     std::string_view record) {
    if (only_asks(op)) return;
    if (op == Op::kLaunch || op == Op::kEventRecord) {
        if (done) add(op, use, record);
        return;
    }
    if (copies_to_host(op, record)) {
        if (fatal) return;
        if (done && is_awaited(op, record)) add(op, use, {});
        return;  // one under way is not in the log, so nothing in front of it is executed again
    }
    forget();
}

}  // namespace smt::runtime::server
