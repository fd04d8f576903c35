// A completion word holds (number of the use << 32) | stream reference. It grows with every use, as waiting
// threads require, and identifies the stream to query after a long wait.
//
// Waiting has three steps. Spin, since copies take microseconds. Then nap, since the copy is probably the
// next piece of work. Then, since the stream's earlier work may take any time, request a synchronise of that
// one stream from the server and sleep until the reply. The last step also reveals a failed record: its
// word is never written. Where any slot will do, the server waits for any of them (kAwaitSlot).
#include "interpose/driver/staging.h"

#include <time.h>

#include "interpose/driver/capture.h"
#include "interpose/process/session.h"
#include "interpose/transport/call_timer.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/remote_call.h"
#include "interpose/transport/waiting.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using protocol::kStagingSlotBytes;
using protocol::kStagingSlots;
using protocol::Op;

namespace {

constexpr int kNaps = 40;
constexpr long kNapNanoseconds = 20'000;

// For a word that a destroyed stream's work must still write: the stream was synchronised, or the word is
// lost.
constexpr int kLastNaps = 2000;

// Copies of up to so many bytes share a slot with those before them. Natively, too, they wait for nothing.
constexpr uint64_t kShortest = 64u << 10;
constexpr uint64_t kAlignment = 256;

uint64_t next_value(uint64_t value, uint32_t stream) { return ((value >> 32) + 1) << 32 | stream; }

CUresult open_staging(LaneStaging& staging) {
    RemoteCall call(Op::kOpenStaging, 0);
    if (!call.open()) return call.status();
    SMT_TRY(call.wait());
    protocol::StagingOpened opened{};
    call.out(&opened);
    if (!call.reply().good()) return CUDA_ERROR_UNKNOWN;
    staging.first_word = opened.first_word;
    staging.next = 0;
    for (uint32_t i = 0; i < kStagingSlots; ++i)
        staging.values[i] =
            this_session().completion_word(opened.first_word + i).load(std::memory_order_acquire);
    staging.slots = this_session().arena_base() + opened.offset;
    return CUDA_SUCCESS;
}

bool is_free(const LaneStaging& staging, uint32_t index) {
    return this_session().completion_word(staging.first_word + index).load(std::memory_order_acquire) >=
           staging.values[index];
}

// The next slot in turn that matches; kStagingSlots: none.
template <typename Match>
uint32_t find_slot(const LaneStaging& staging, Match match) {
    for (uint32_t i = 0; i < kStagingSlots; ++i) {
        const uint32_t index = (staging.next + i) % kStagingSlots;
        if (match(index)) return index;
    }
    return kStagingSlots;
}

template <typename Reached>
bool nap_until(const Reached& reached, int naps) {
    const TimedWait timed(&protocol::CallTimes::word);
    for (int i = 0; i < naps; ++i) {
        if (reached()) return true;
        if (this_session().sticky_error() != CUDA_SUCCESS) return false;
        timespec nap{0, kNapNanoseconds};
        nanosleep(&nap, nullptr);
    }
    return reached();
}

bool nap_until(uint32_t word, uint64_t value, int naps) {
    std::atomic<uint64_t>& reached = this_session().completion_word(word);
    return nap_until([&] { return reached.load(std::memory_order_acquire) >= value; }, naps);
}

// SUCCESS: the word has the value. NOT_READY: the stream is idle and the word has not, so its record failed.
// Any other error: that of the record, or of the thread's earlier work.
CUresult settle(uint32_t word, uint64_t value) {
    // Synchronising a capturing stream would break the capture. The awaited record was submitted before the
    // capture, and a record that fails writes its word as well.
    while (any_capture_active()) {
        if (nap_until(word, value, kNaps)) return CUDA_SUCCESS;
        if (!this_session().server_lives()) return this_session().sticky_error();
        if (this_session().sticky_error() != CUDA_SUCCESS) return this_session().sticky_error();
    }
    RemoteCall call(Op::kStreamSynchronize, sizeof(protocol::StreamRef));
    if (!call.open()) return call.status();
    call.in(protocol::StreamRef{static_cast<uint32_t>(value), 0});
    CUresult status = call.wait();
    if (this_session().completion_word(word).load(std::memory_order_acquire) >= value) return CUDA_SUCCESS;
    if (status == CUDA_ERROR_INVALID_HANDLE && nap_until(word, value, kLastNaps)) return CUDA_SUCCESS;
    if (this_session().sticky_error() != CUDA_SUCCESS) return this_session().sticky_error();
    return status == CUDA_SUCCESS || status == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_NOT_READY : status;
}

// The word has its value, or the session is over and the copy was not made. A kernel before the copy may have
// ended at its fence: the copy was made, and has the error.
CUresult confirm(uint32_t word) {
    if (this_session().completion_word(word).load(std::memory_order_acquire) < protocol::kReleasedWord) {
        this_session().tell_fault();
        return this_session().sticky_error();
    }
    for (int i = 0;
         i < kLastNaps && this_session().server_lives() && this_session().sticky_error() == CUDA_SUCCESS;
         ++i) {
        timespec nap{0, kNapNanoseconds};
        nanosleep(&nap, nullptr);
    }
    return this_session().sticky_error() != CUDA_SUCCESS ? this_session().sticky_error() : CUDA_ERROR_UNKNOWN;
}

CUresult await(uint32_t word, uint64_t value) {
    if (spin_word(word, value) || nap_until(word, value, kNaps)) return confirm(word);
    const CUresult status = settle(word, value);
    return status == CUDA_SUCCESS ? confirm(word) : status;
}

CUresult ask_for_slot(const LaneStaging& staging, uint32_t held, uint32_t* index) {
    protocol::AwaitSlot request{};
    for (uint32_t i = 0; i < kStagingSlots; ++i)
        if (!(held >> i & 1)) request.done_values[i] = staging.values[i];
    RemoteCall call(Op::kAwaitSlot, sizeof request);
    if (!call.open()) return call.status();
    call.in(request);
    SMT_TRY(call.wait());
    call.out(index);
    return is_free(staging, *index) ? confirm(staging.first_word + *index) : CUDA_SUCCESS;
}

// A slot that is free, of those that are not held. The streams of some may wait for what this thread does
// next.
CUresult await_any(const LaneStaging& staging, uint32_t held, uint32_t* index) {
    const auto found = [&] {
        *index = find_slot(staging, [&](uint32_t i) { return !(held >> i & 1) && is_free(staging, i); });
        return *index != kStagingSlots;
    };
    for (bool there = look_until(found) || nap_until(found, kNaps); !there;) {
        if (this_session().sticky_error() != CUDA_SUCCESS) return this_session().sticky_error();
        if (!this_session().server_lives()) return CUDA_ERROR_UNKNOWN;
        CUresult status = CUDA_ERROR_INVALID_HANDLE;
        if (!any_capture_active()) status = ask_for_slot(staging, held, index);  // as in settle()
        if (status != CUDA_ERROR_INVALID_HANDLE && status != CUDA_ERROR_DEINITIALIZED) return status;
        there = nap_until(found, kLastNaps);  // work of destroyed streams goes on
    }
    return confirm(staging.first_word + *index);
}

}  // namespace

CUresult acquire_slot(StagingSlot& slot, uint32_t stream, uint64_t bytes, uint32_t held) {
    CUresult status;
    Lane* lane = this_lane(status);
    if (!lane) return status;
    LaneStaging& staging = lane->staging;
    if (!staging.slots) status = open_staging(staging);
    if (!staging.slots) return status;
    const uint64_t taken = (bytes + kAlignment - 1) & ~(kAlignment - 1);
    uint32_t index = kStagingSlots;
    if (bytes <= kShortest)
        index = find_slot(staging, [&](uint32_t i) {
            return static_cast<uint32_t>(staging.values[i]) == stream &&
                   staging.filled[i] + taken <= kStagingSlotBytes && !is_free(staging, i);
        });
    const bool shared = index != kStagingSlots;
    if (!shared)
        index = find_slot(staging, [&](uint32_t i) { return !(held >> i & 1) && is_free(staging, i); });
    if (index == kStagingSlots) SMT_TRY(await_any(staging, held, &index));
    if (!shared) {
        staging.next = (index + 1) % kStagingSlots;
        staging.filled[index] = 0;
    }
    const auto offset = static_cast<uint32_t>(staging.filled[index]);
    staging.filled[index] += taken;
    staging.values[index] = next_value(staging.values[index], stream);
    slot = {staging.slots + index * kStagingSlotBytes + offset, index, staging.first_word + index, offset,
            staging.values[index]};
    return CUDA_SUCCESS;
}

bool slot_is_free(uint32_t held) {
    const LaneStaging& staging = thread_lane->staging;
    return find_slot(staging, [&](uint32_t i) { return !(held >> i & 1) && is_free(staging, i); }) !=
           kStagingSlots;
}

CUresult wait_slot(const StagingSlot& slot) {
    CUresult status = await(slot.word, slot.done_value);
    if (status == CUDA_ERROR_NOT_READY) {
        CUresult failed = late_error();
        return failed == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : failed;
    }
    return status;
}

// Copies before it may still be reading a slot that is shared.
void abandon_slot(const StagingSlot& slot) {
    if (!thread_lane) return;
    thread_lane->staging.values[slot.index] = slot.offset != 0
                                                  ? slot.done_value - (uint64_t{1} << 32)
                                                  : this_session().completion_word(slot.word).load();
}

}  // namespace smt::interpose::driver
