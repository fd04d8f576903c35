// A lane while a fault is dealt with: it stands still, and goes on here or in another process.
#include <fmt/format.h>

#include <cstring>

#include "opcodes.gen.h"
#include "runtime/protocol/try.h"
#include "runtime/server/fatal.h"
#include "runtime/server/lane.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/takeover/launch_log.h"
#include "runtime/thread/futex.h"

namespace smt::runtime::server {

using protocol::Op;
using protocol::RecordHeader;

namespace {

// Records that change what the server has before the driver's call, or whose upload is used up by then.
bool repeatable(Op op) {
    switch (op) {
        case Op::kUploadBegin:
        case Op::kUploadSlot:
        case Op::kModuleLoad:
        case Op::kModuleUnload:
        case Op::kContextReset:
        case Op::kLinkAdd:
        case Op::kLinkComplete:
        case Op::kStreamDestroy:
            return false;
        default:
            return true;
    }
}

// Records that change nothing of what Session::save() writes, but for the lane's position and what is in
// flight. A record that is not named here makes the session be described anew.
bool changes_objects(uint16_t op) {
    switch (static_cast<Op>(op)) {
        case Op::kPad:
        case Op::kWaitLane:
        case Op::kLaunch:
        case Op::kCopySlot:
        case Op::kAwaitSlot:
        case Op::kCopy:
        case Op::kEventRecord:
        case Op::kEventSynchronize:
        case Op::kEventElapsed:
        case Op::kStreamWaitEvent:
        case Op::kStreamSynchronize:
        case Op::kStreamQuery:
        case Op::kContextSynchronize:
        case Op::kMemInfo:
        case Op::kUnsupported:
            return false;
        default:
            break;
    }
    switch (static_cast<protocol::GeneratedOp>(op)) {
        case protocol::GeneratedOp::kMemsetD8Async:
        case protocol::GeneratedOp::kMemsetD16Async:
        case protocol::GeneratedOp::kMemsetD32Async:
        case protocol::GeneratedOp::kMemsetD2D8Async:
        case protocol::GeneratedOp::kMemsetD2D16Async:
        case protocol::GeneratedOp::kMemsetD2D32Async:
            return false;
        default:
            return true;
    }
}

}  // namespace

void Lane::mark(const RecordHeader& record) {
    mark_->begin(head_ + record.bytes);
    if (changes_objects(record.op)) session_.changed();
}

// A record that met a constant's address may have written to it.
void Lane::mark_done() {
    if (!session_.memory().own().constants().all_followed()) session_.changed();
    mark_->done();
}

Lane::Lane(Session& session, const Saved& saved)
    : session_(session),
      index_(static_cast<uint32_t>(saved.index)),
      address_(saved.address),
      mark_(session.marks() ? session.marks()->lane(index_) : nullptr),
      reached_(saved.position),
      head_(saved.position),
      tail_(saved.position),
      record_(new uint64_t[protocol::kMaxRecordBytes / 8]),
      staging_(saved.staging) {
    if (mark_) mark_->go_on_at(saved.position);
    header().times = 0;
}

CUresult Lane::take_own_stream(const SavedStream& saved) {
    return session_.streams().restore_own(saved, &own_stream_);
}

Lane::Saved Lane::saved() const {
    Saved saved{index_, address_, head_, staging_, own_stream_ != nullptr, {}};
    if (own_stream_) saved.own_stream = Streams::saved(*own_stream_);
    return saved;
}

std::string Lane::why_not_carried() const {
    if (unrepeatable_) return "it was loading or unloading code, or changing its context";
    if (!upload_.empty() || upload_.capacity() != 0) return "it was loading code";
    if (!download_.empty()) return "it was linking code";
    return {};
}

void Lane::halt() {
    halted_.store(true);
    stopping_.store(true);
    session_.gate().look();
    wake();
}

void Lane::stand() const {
    session_.gate().pass(session_.device(), [this] { return stopping_.load(); });
}

bool Lane::pending() const { return !ended() && header().tail.load() != reached_.load(); }

void Lane::wake() {
    if (ended()) return;
    futex_wake_all(header().server_asleep);
    progress_.fetch_add(1);
    futex_wake_all(progress_);
}

void Lane::await_fate() {
    session_.await_fate();
    halted_.store(false);
    stopping_.store(told_to_stop_.load());
}

// For a takeover. Called before the record's uses are noted as such.
void Lane::note_launch(const RecordHeader& record, CUresult status) {
    const std::pair<uint32_t, uint64_t> use =
        used_.empty() ? std::pair<uint32_t, uint64_t>{~0u, 0}
                      : std::pair{used_.back().stream->reference, used_.back().number};
    session_.launch_log()->note(static_cast<Op>(record.op), status == CUDA_SUCCESS, is_fatal(status), use,
                                {reinterpret_cast<const char*>(record_.get()), record.payload_bytes});
}

bool Lane::leaves_open(CUresult status) {
    if (final_ || !session_.server().takes_over()) return false;
    left_open_ = left_open_ || is_fatal(status) || session_.held();
    return left_open_;
}

// The record has failed. While the context is lost and the session may go on in another process, it is not
// answered: that process executes it again. If the session stays, this one does, and answers.
void Lane::execute_again(const RecordHeader& record, CUresult* status, uint32_t* reply_bytes) {
    if (is_fatal(*status)) session_.fault(*status);
    const bool held = session_.held();
    if (!held && !left_open_) return;
    if (held) {
        for (const Use& use : used_) use.stream->in_flight.withdraw(use.number);
        unrepeatable_ = !repeatable(static_cast<Op>(record.op));
        await_fate();
    }
    let_go();
    final_ = true;
    *reply_bytes = 0;
    *status = execute(record, reply_bytes);
    final_ = left_open_ = unrepeatable_ = false;
}

CUresult Lane::replay(Op op, const std::string& payload, std::vector<char> upload) {
    if (payload.size() > protocol::kMaxRecordBytes) return CUDA_ERROR_INVALID_VALUE;
    RecordHeader record{};
    record.op = static_cast<uint16_t>(op);
    record.payload_bytes = static_cast<uint32_t>(payload.size());
    std::memcpy(record_.get(), payload.data(), payload.size());
    upload_ = std::move(upload);
    uint32_t reply_bytes = 0;
    const CUresult status = execute(record, &reply_bytes);
    let_go();
    return status;
}

}  // namespace smt::runtime::server
