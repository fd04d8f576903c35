#include "interpose/transport/remote_call.h"

#include "interpose/process/session.h"
#include "interpose/transport/answers.h"
#include "interpose/transport/call_timer.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/waiting.h"

namespace smt::interpose {

using protocol::kMaxRecordBytes;
using protocol::kRecordAlignment;
using protocol::LaneHeader;
using protocol::RecordHeader;
using protocol::RecordStamp;

namespace {

constexpr uint64_t record_bytes(uint64_t payload) {
    return (sizeof(RecordHeader) + payload + kRecordAlignment - 1) & ~uint64_t{kRecordAlignment - 1};
}

CUresult await_reply(Lane& lane) {
    const TimedWait timed(&protocol::CallTimes::reply);
    LaneHeader& header = *lane.header;
    uint32_t wanted = lane.reply_seq;
    auto answered = [&] { return header.reply_seq.load(std::memory_order_acquire) == wanted; };
    if (look_until(answered)) return CUDA_SUCCESS;
    CUresult status = CUDA_SUCCESS;
    while (true) {
        header.client_asleep.store(1, std::memory_order_seq_cst);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        uint32_t seen = header.reply_seq.load(std::memory_order_acquire);
        if (seen == wanted) break;
        futex_wait(header.reply_seq, seen, kLivenessMs);
        if (answered()) break;
        // After the session's end a call of the server may not return.
        if (lane.session->sticky_error() != CUDA_SUCCESS || !lane.session->server_lives()) {
            status = lane.session->sticky_error();
            break;
        }
    }
    header.client_asleep.store(0, std::memory_order_relaxed);
    return status;
}

}  // namespace

RemoteCall::RemoteCall(uint16_t op, uint64_t payload_bound) : op_(op) {
    Lane* lane = this_lane(status_);
    if (!lane) [[unlikely]]
        return;
    if (int32_t fatal = lane->shared->fatal.load(std::memory_order_relaxed)) [[unlikely]] {
        status_ = static_cast<CUresult>(fatal);
        lane->session->tell_fault();
        return;
    }
    uint64_t bytes = record_bytes(payload_bound);
    if (payload_bound > kMaxRecordBytes || bytes > kMaxRecordBytes) [[unlikely]] {
        status_ = CUDA_ERROR_INVALID_VALUE;
        return;
    }
    if (lane->times) [[unlikely]]
        bytes += sizeof(RecordStamp);
    char* at = reserve(*lane, static_cast<uint32_t>(bytes));
    if (!at) [[unlikely]] {
        status_ = lane->session->sticky_error();
        return;
    }
    writer_ = protocol::Writer(at + sizeof(RecordHeader), payload_bound);
    lane_ = lane;
}

void RemoteCall::send(uint16_t flags, uint32_t reply_seq) {
    uint32_t payload = static_cast<uint32_t>(writer_.used());
    uint32_t bytes = static_cast<uint32_t>(record_bytes(payload));
    char* at = lane_->ring + lane_->tail % protocol::kRingBytes;
    if (lane_->times) [[unlikely]] {
        *reinterpret_cast<RecordStamp*>(at + bytes) = {protocol::ticks(), call_under_way(), 0};
        bytes += sizeof(RecordStamp);
        flags |= protocol::kStamped;
    }
    *reinterpret_cast<RecordHeader*>(at) = {bytes, op_, flags, reply_seq, payload};
    publish(*lane_, bytes);
}

CUresult RemoteCall::post_quietly() {
    if (!lane_) return status_;
    if (!writer_.good()) return status_ = CUDA_ERROR_INVALID_VALUE;
    send(0, 0);
    lane_->posted.store(lane_->tail, std::memory_order_relaxed);
    made_ = true;
    return status_;
}

CUresult RemoteCall::post() {
    const CUresult late = lane_ ? late_error() : CUDA_SUCCESS;  // of calls before this one
    if (post_quietly() != CUDA_SUCCESS) return status_;
    return status_ = late;
}

CUresult RemoteCall::wait() {
    if (!lane_) return status_;
    if (!writer_.good()) return status_ = CUDA_ERROR_INVALID_VALUE;
    send(protocol::kWantsReply, ++lane_->reply_seq);
    status_ = await_reply(*lane_);
    if (status_ != CUDA_SUCCESS) return status_;
    lane_->posted.store(lane_->tail, std::memory_order_relaxed);
    LaneHeader& header = *lane_->header;
    uint64_t size = header.reply_bytes;
    reply_ = protocol::Reader(lane_->reply, size <= protocol::kReplyBytes ? size : 0);
    status_ = static_cast<CUresult>(header.reply_status);
    made_ = status_ == CUDA_SUCCESS;
    if (status_ != CUDA_SUCCESS) [[unlikely]]
        lane_->session->tell_fault();
    return status_;
}

// The payload is in the ring, and stays there until this thread writes its next record.
CUresult RemoteCall::recall_or_wait() {
    if (!lane_ || !writer_.good()) return wait();
    const char* payload = lane_->ring + lane_->tail % protocol::kRingBytes + sizeof(RecordHeader);
    const Question question{op_, static_cast<uint32_t>(writer_.used()), payload, answers_epoch(),
                            lane_->session->number()};
    uint32_t bytes = 0;
    if (recall_answer(question, lane_->reply, &bytes)) {
        reply_ = protocol::Reader(lane_->reply, bytes);
        return status_;
    }
    if (wait() == CUDA_SUCCESS) remember_answer(question, lane_->reply, static_cast<uint32_t>(reply_.left()));
    return status_;
}

}  // namespace smt::interpose
