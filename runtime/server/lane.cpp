#include "runtime/server/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "opcodes.gen.h"
#include "runtime/device/cores.h"
#include "runtime/server/call.h"
#include "runtime/server/fatal.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/thread/futex.h"

namespace smt::runtime::server {

using protocol::kMaxRecordBytes;
using protocol::kRingBytes;
using protocol::LaneHeader;
using protocol::Op;
using protocol::RecordHeader;

namespace {

// How long to poll for the next record before sleeping. A client that synchronises in a loop continues within
// some ten microseconds, and a futex wake costs more than that. With one or two processors polling would
// occupy the core that the client needs.
constexpr uint64_t kLongSpin = 50'000;  // ns
constexpr uint64_t kShortSpin = 2'000;
// How long to continue polling while cores are idle. Waking a sleeping thread takes tens of microseconds,
// which would delay each call of a client that computes a little between its calls.
constexpr uint64_t kLookOn = 1'000'000;
// A tenant with a raised priority is usually a service: its requests are milliseconds apart, and each would
// wait for the wake. The polling takes an idle processor.
constexpr uint64_t kUrgentLookOn = 10'000'000;
constexpr int kPausesPerLook = 16;

// The longest sleep: a client that ends or misbehaves never wakes the server.
constexpr uint32_t kSleepMs = 1000;
constexpr uint32_t kLaneSleepMs = 20;

uint64_t spin_nanoseconds() { return device::cores_to_spare() ? kLongSpin : kShortSpin; }

// Polls until `done` returns true or the time is over. Returns whether it was done.
template <typename Done>
bool spin_until(Done done, uint64_t look_on = kLookOn) {
    if (done()) return true;
    const uint64_t start = journal::now_ns();
    const auto goes_on = [&](uint64_t lasted) {
        return lasted < spin_nanoseconds() ||
               (lasted < look_on && device::cores_to_spare() && !device::cores_scarce());
    };
    do {
        for (int i = 0; i < kPausesPerLook; ++i) {
            __builtin_ia32_pause();
            if (done()) return true;
        }
    } while (goes_on(journal::now_ns() - start));
    return done();
}

}  // namespace

Lane::Lane(Session& session, uint32_t index, uint64_t address, uint64_t position)
    : session_(session),
      index_(index),
      address_(address),
      mark_(session.marks() ? session.marks()->lane(index) : nullptr),
      reached_(position),
      head_(position),
      tail_(position),
      record_(new uint64_t[kMaxRecordBytes / 8]) {
    if (mark_) mark_->go_on_at(position);
    header().head.store(position);
    header().tail.store(position);
    const CallTrace* trace = session.server().call_trace();
    header().times = trace ? protocol::kLaneBytes : 0;
    if (trace)
        trace_ = std::make_unique<LaneTrace>(
            *trace, reinterpret_cast<const protocol::LaneTimes*>(address + protocol::kLaneBytes));
}

Lane::~Lane() { join(); }

std::string Lane::start() {
    return thread_.start(
        {fmt::format("lane {}", index_), session_.tenant()}, [this] { run(); },
        [this](const std::string& why) { fail(why); });
}

// Called on the lane's thread after an exception there.
void Lane::fail(const std::string& why) {
    stopping_.store(true);
    close();
    session_.end_because(fmt::format("its lane {} failed: {}", index_, why));
}

void Lane::join() { thread_.join(); }

// To be called repeatedly until the lane has ended, because the client may write server_asleep too.
void Lane::stop() {
    told_to_stop_.store(true);
    stopping_.store(true);
    if (ended()) return;  // its memory may belong to another lane already
    session_.gate().look();
    futex_wake_all(header().server_asleep);
    progress_.fetch_add(1);
    futex_wake_all(progress_);
}

void Lane::wait_reached(uint64_t position, const Lane& waiter) {
    auto reached = [&] { return reached_.load() >= position; };
    if (spin_until(reached)) return;
    waiters_.fetch_add(1);
    while (!waiter.stopping()) {
        if (session_.gate().keeps_back()) waiter.stand();
        uint32_t progress = progress_.load();
        if (reached()) break;
        futex_wait(progress_, progress, kLaneSleepMs);
    }
    waiters_.fetch_sub(1);
}

CUresult Lane::open_staging() {
    return staging_.address ? CUDA_SUCCESS : session_.arena().open_staging(&staging_);
}

bool Lane::staging_slot(uint32_t slot, uint64_t* address, uint32_t* word) const {
    if (staging_.address == 0 || slot >= protocol::kStagingSlots) return false;
    *address = staging_.address + slot * protocol::kStagingSlotBytes;
    *word = staging_.first_word + slot;
    return true;
}

bool Lane::use_slot(uint32_t slot, uint64_t done_value, uint64_t* address, uint32_t* word) {
    if (!staging_slot(slot, address, word)) return false;
    staging_.done_values[slot] = done_value;
    return true;
}

void Lane::run() {
    if (CUresult status = session_.device().enter_thread(&session_, index_); status != CUDA_SUCCESS) {
        session_.end_because(
            fmt::format("lane {} has no context: error {}", index_, static_cast<int>(status)));
    }
    if (trace_) trace_->begin();
    Step step = Step::kDone;
    do {
        if (halted_.load()) await_fate();
        while (step == Step::kDone && !stopping_.load(std::memory_order_relaxed)) {
            if (session_.gate().closed()) [[unlikely]] {
                stand();  // and then it executes a record, also if the gate has closed again: so turns end
                if (stopping_.load()) continue;
            }
            if (tail_ == head_) tail_ = header().tail.load(std::memory_order_acquire);
            if (tail_ == head_) {
                wait_for_records();
            } else {
                step = next_record(tail_);
            }
        }
    } while (step == Step::kDone && halted_.load());
    if (step == Step::kCorrupt) session_.end_because(fmt::format("the ring of lane {} is corrupt", index_));
    if (trace_) trace_->end({session_.pid(), session_.tenant(), index_});
    close();
}

void Lane::wait_for_records() {
    LaneHeader& shared = header();
    std::atomic<uint32_t>& told = session_.arena().header().cores_scarce;
    if (const uint32_t scarce = device::cores_scarce(); told.load(std::memory_order_relaxed) != scarce)
        told.store(scarce, std::memory_order_relaxed);
    const LaneGate& gate = session_.gate();
    auto more = [&] {
        return shared.tail.load(std::memory_order_acquire) != head_ || stopping_.load() || gate.closed();
    };
    const uint64_t begun = trace_ ? protocol::ticks() : 0;
    const bool came = spin_until(more, session_.dispatched().priority > 0 ? kUrgentLookOn : kLookOn);
    if (trace_) trace_->polled(begun);
    if (came) return;
    if (mark_) session_.note_rest();
    const uint64_t lay_down = trace_ ? protocol::ticks() : 0;
    // Either this thread sees the new tail now, or the client sees that it sleeps.
    shared.server_asleep.exchange(1);
    if (shared.tail.load() == head_ && !stopping_.load() && !gate.closed())
        futex_wait(shared.server_asleep, 1, kSleepMs);
    shared.server_asleep.store(0);
    if (trace_) trace_->slept(lay_down);
}

// Copies the record at head_ out of the ring, checks the copy, executes the copy.
Lane::Step Lane::next_record(uint64_t tail) {
    uint64_t available = tail - head_;
    uint64_t at = head_ % kRingBytes;
    if (available > kRingBytes || available % protocol::kRecordAlignment != 0) return Step::kCorrupt;
    const char* from = reinterpret_cast<const char*>(address_ + protocol::kLaneRingOffset + at);
    RecordHeader record;
    std::memcpy(&record, from, sizeof record);
    __asm__ volatile("" ::: "memory");  // the compiler must not read the record again
    bool fits = record.bytes >= sizeof record && record.bytes % protocol::kRecordAlignment == 0 &&
                record.bytes <= available && record.bytes <= kRingBytes - at;
    if (!fits) return Step::kCorrupt;
    Op op = static_cast<Op>(record.op);
    if (mark_) [[unlikely]]
        mark(record);
    if (op == Op::kCloseLane) return Step::kEnd;
    if (op == Op::kPad) {
        publish(head_ + record.bytes);
        if (mark_) mark_->done();
        return Step::kDone;
    }
    const uint32_t stamp = record.flags & protocol::kStamped ? sizeof(protocol::RecordStamp) : 0;
    if (record.bytes > kMaxRecordBytes + stamp || record.bytes < sizeof record + stamp ||
        record.payload_bytes > record.bytes - sizeof record - stamp)
        return Step::kCorrupt;
    if (trace_) note_taken(record, from + record.bytes);
    std::memcpy(record_.get(), from + sizeof record, record.payload_bytes);
    __asm__ volatile("" ::: "memory");

    uint32_t reply_bytes = 0;
    CUresult status = execute(record, &reply_bytes);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) [[unlikely]] {
        make_room(record, &status, &reply_bytes);
        await_room(record, &status, &reply_bytes);
    }
    if (status != CUDA_SUCCESS) [[unlikely]] {
        execute_again(record, &status, &reply_bytes);
        // Not that the client is gone, as a stream says that was abandoned at the fault, or that a launch was
        // held back, which has no meaning any more. A session that is not told of the fault may go on.
        if (const CUresult fatal = session_.server().fatal();
            status != CUDA_SUCCESS && fatal != CUDA_SUCCESS && session_.poisoned())
            status = fatal;
    }
    if (session_.fence()) session_.look_at_fence();
    if (const CUresult ended = session_.ended_with(); ended != CUDA_SUCCESS) [[unlikely]]
        status = ended;  // work that it waited for may have been dropped
    let_go();
    finish(record, status, reply_bytes);
    if (mark_) [[unlikely]]
        mark_done();
    return Step::kDone;
}

void Lane::note_taken(const RecordHeader& record, const char* end) {
    protocol::RecordStamp stamp{};
    if (record.flags & protocol::kStamped) std::memcpy(&stamp, end - sizeof stamp, sizeof stamp);
    trace_->taken(stamp, record.flags & protocol::kWantsReply);
}

StreamPointer Lane::held(CUstream stream) const {
    const auto found = std::find_if(held_streams_.begin(), held_streams_.end(),
                                    [&](const StreamPointer& each) { return each->handle == stream; });
    return found == held_streams_.end() ? nullptr : *found;
}

void Lane::let_go() {
    note_uses();
    held_streams_.clear();
    held_events_.clear();
}

void Lane::note_uses() {
    for (const Use& use : used_) session_.streams().note_use(*use.stream);
    if (mark_ && !used_.empty()) mark_->used(used_.size());
    used_.clear();
}

CUresult Lane::execute(const RecordHeader& record, uint32_t* reply_bytes) {
    if (session_.fence()) session_.look_at_fence();
    if (const CUresult ended = session_.ended_with(); ended != CUDA_SUCCESS) [[unlikely]]
        return ended;
    try {
        if (static_cast<Op>(record.op) == Op::kWaitLane) return wait_lane(record);
        return call_handler(record, reply_bytes);
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        session_.note(fmt::format("operation {} failed: {}", record.op, error.what()));
        return CUDA_ERROR_UNKNOWN;
    }
}

CUresult Lane::call_handler(const RecordHeader& record, uint32_t* reply_bytes) {
    Handler handler = nullptr;
    if (record.op >= protocol::kFirstGeneratedOp) {
        handler = generated_handler(record.op);
    } else {
        handler = core_handler(static_cast<Op>(record.op));
        if (!handler) handler = written_handler(static_cast<Op>(record.op));
    }
    if (!handler) {
        session_.note(fmt::format("unknown operation {}", record.op));
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool wants_reply = record.flags & protocol::kWantsReply;
    void* reply = reinterpret_cast<void*>(address_ + protocol::kLaneReplyOffset);
    Call call{*this,
              session_,
              session_.driver(),
              protocol::Reader(record_.get(), record.payload_bytes),
              protocol::Writer(wants_reply ? reply : nullptr, wants_reply ? protocol::kReplyBytes : 0),
              wants_reply};
    CUresult status = handler(call);
    if (session_.launch_log()) [[unlikely]]
        note_launch(record, status);
    if (!wants_reply) return status;
    if (!call.out.good()) {
        session_.note(fmt::format("the reply to operation {} is too long", record.op));
        return CUDA_ERROR_INVALID_VALUE;
    }
    *reply_bytes = static_cast<uint32_t>(call.out.used());
    return status;
}

CUresult Lane::wait_lane(const RecordHeader& record) {
    protocol::Reader in(record_.get(), record.payload_bytes);
    auto wait = in.scalar<protocol::WaitLane>();
    if (!in.good() || !session_.lane_known(wait.lane)) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Lane> other = session_.lane(wait.lane);  // null: ended, so all is reached
    const device::InWait timed;
    if (other && other.get() != this) other->wait_reached(wait.position, *this);
    const bool cut_off = halted_.load() && other && other->reached_.load() < wait.position;
    return cut_off ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

void Lane::finish(const RecordHeader& record, CUresult status, uint32_t reply_bytes) {
    if (status == CUDA_SUCCESS && (record.flags & protocol::kWantsReply))
        status = session_.server().fault_to_come();
    if (status != CUDA_SUCCESS && is_fatal(status)) session_.fault(status);
    if (trace_) trace_->done();
    LaneHeader& shared = header();
    if (!(record.flags & protocol::kWantsReply)) {
        int32_t none = 0;
        if (status != CUDA_SUCCESS) shared.async_error.compare_exchange_strong(none, status);
        publish(head_ + record.bytes);
        return;
    }
    publish(head_ + record.bytes);
    shared.reply_status = status;
    shared.reply_bytes = reply_bytes;
    shared.reply_seq.exchange(record.reply_seq);
    if (shared.client_asleep.load() != 0) futex_wake_all(shared.reply_seq);
}

void Lane::publish(uint64_t head) {
    LaneHeader& shared = header();
    head_ = head;
    shared.head.store(head, std::memory_order_release);
    // A full barrier: a thread that starts to wait before it is seen below, one that starts later sees the
    // head.
    reached_.exchange(head);
    if (waiters_.load() != 0) {
        progress_.fetch_add(1);
        futex_wake_all(progress_);
    }
    // A client that fills the ring faster than the server empties it is woken once per half ring.
    if (shared.space_wanted.load() != 0 && shared.tail.load() - head <= kRingBytes / 2) {
        shared.space_wanted.store(0);
        futex_wake_all(shared.space_wanted);
    }
}

void Lane::new_thread() {
    launched_on_ = nullptr, in_a_row_ = 0;
    if (own_stream_ && session_.streams().query(*own_stream_) != CUDA_SUCCESS) leave_own_stream();
}

// Its work goes on.
void Lane::leave_own_stream() {
    if (own_stream_) {
        Uses uses(session_.handles(), session_.driver());
        session_.drop_capture(own_stream_->handle, uses);
        session_.streams().retire(own_stream_);
    }
    own_stream_.reset();
}

// Runs on the lane's thread at its end. The client no longer uses the lane's memory, or is gone.
void Lane::close() {
    reached_.exchange(~0ull);
    progress_.fetch_add(1);
    futex_wake_all(progress_);
    if (!stopping_.load()) {
        if (staging_.address) session_.arena().close_staging(staging_);
        leave_own_stream();
        session_.lane_ended();
        ended_.store(true, std::memory_order_release);
        session_.arena().free(address_);
        if (mark_) mark_->done();
        return;
    }
    session_.lane_ended();
    ended_.store(true, std::memory_order_release);
}

}  // namespace smt::runtime::server
