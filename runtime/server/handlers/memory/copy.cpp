// Copies: between places that the server can access (kCopy), and through a staging slot (kCopySlot).
#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/handlers/memory/constant_write.h"
#include "runtime/server/handlers/memory/copy_plan.h"
#include "runtime/server/handlers/memory/move.h"
#include "runtime/server/lane.h"
#include "runtime/server/poll_interval.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using protocol::CopyAnswer;

namespace {

// Enqueues the write of the client's word behind the copy. If device printf output is expected and the client
// waits for the copy, this function waits too: to the application the copy is a synchronisation.
CUresult tell_by_word(Call& call, Stream& stream, uint32_t word, uint64_t value, bool synchronizes) {
    if (synchronizes && call.session.code().output_expected().exchange(false)) {
        SMT_TRY(await(call, stream));
    }
    stream.in_flight.ends_at(call.session.arena().word(word), value, stream.uses.load());
    return call.driver.cuStreamWriteValue64_v2(stream.handle, call.session.arena().word_address(word), value,
                                               CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult copy_slot(Call& call, const protocol::CopySlot& request, uint64_t slot, uint32_t word) {
    CopyPlan plan;
    SMT_TRY(plan_slot_copy(call, request, slot, &plan));
    SMT_TRY(call.uses.begin());
    StreamPointer stream;
    SMT_TRY(use_stream(call, request.stream, &stream));
    if (call.session.streams().capturing(stream->handle)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const ConstantWrite to(call, &plan.to), from(call, &plan.from);
    SMT_TRY(from.follow(*stream, to.follow(*stream, plan.enqueue(call.driver, stream->handle))));
    return tell_by_word(call, *stream, word, request.done_value, !request.to_device);
}

// `last`: nothing else is enqueued behind it before the stream's next guard.
CUresult enqueue(Call& call, const CopyPlan& plan, Stream& stream, bool last) {
    if (last && plan.to.type == CU_MEMORYTYPE_DEVICE && plan.from.type == CU_MEMORYTYPE_DEVICE) {
        const CUresult status =
            launch_move(call, stream, [&](dispatch::Moves& moves, dispatch::MoveLaunch* launch) {
                return moves.plan(plan.shape(), [](CUdeviceptr) { return false; }, launch);
            });
        if (status != CUDA_ERROR_NOT_SUPPORTED) return status;
    }
    SMT_TRY(stream.guard());
    return plan.enqueue(call.driver, stream.handle);
}

CUresult copy(Call& call, const protocol::Copy& request, uint32_t word) {
    CopyPlan plan;
    SMT_TRY(plan_copy(call, request, &plan));
    SMT_TRY(call.uses.begin());
    StreamPointer stream;
    SMT_TRY(call.launch_stream(request.stream, &stream));
    const ConstantWrite to(call, &plan.to), from(call, &plan.from);
    const bool last = request.answer == CopyAnswer::kEnqueued && !to.any() && !from.any();
    SMT_TRY(from.follow(*stream, to.follow(*stream, enqueue(call, plan, *stream, last))));
    if (request.answer == CopyAnswer::kEnqueued) return CUDA_SUCCESS;
    // A wait on a capturing stream is the application's error, which the driver reports.
    if (request.answer == CopyAnswer::kDone || call.session.streams().capturing(stream->handle))
        return await(call, *stream);
    return tell_by_word(call, *stream, word, request.done_value, true);
}

// SUCCESS: the slot is free; NOT_READY; INVALID_HANDLE: its stream is destroyed; or the stream's error. A
// simulated device's clock stands while a program polls, so there a stream is waited for that does not wait
// itself. A thread's default stream may be another one than when the slot was used.
CUresult slot_status(Call& call, uint32_t index, uint64_t value) {
    uint64_t slot = 0;
    uint32_t word = 0;
    if (!call.lane.staging_slot(index, &slot, &word)) return CUDA_ERROR_INVALID_VALUE;
    const auto is_free = [&] {
        return call.session.arena().word(word).load(std::memory_order_acquire) >= value;
    };
    if (is_free()) return CUDA_SUCCESS;
    Streams& streams = call.session.streams();
    StreamPointer stream;
    SMT_TRY(streams.find(static_cast<uint32_t>(value), call.lane, &stream));
    if (streams.capturing(stream->handle)) return CUDA_ERROR_NOT_READY;
    if (!call.session.device().properties().keeps_sessions_apart)
        SMT_TRY(streams.query(*stream));
    else if (!stream->pending_wait().waits())
        SMT_TRY(await(call, *stream));
    return is_free() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

}  // namespace

// The client waits for a slot's word, so the word is written in every case.
CUresult handle_copy(Call& call) {
    protocol::Copy request;
    uint64_t slot = 0;
    uint32_t word = 0;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    if (request.answer != CopyAnswer::kWord) return copy(call, request, 0);
    if (!call.lane.use_slot(request.slot, request.done_value, &slot, &word)) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = copy(call, request, word);
    return status ? complete_slot(call, word, request.done_value, status) : CUDA_SUCCESS;
}

CUresult handle_copy_slot(Call& call) {
    protocol::CopySlot request;
    uint64_t slot = 0;
    uint32_t word = 0;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    if (!call.lane.use_slot(request.slot, request.done_value, &slot, &word)) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = copy_slot(call, request, slot, word);
    if (status == CUDA_SUCCESS) return CUDA_SUCCESS;
    StreamPointer behind;
    if (request.offset != 0 && call.find_stream(request.stream, &behind) == CUDA_SUCCESS &&
        call.session.streams().capturing(behind->handle))
        behind.reset();
    return complete_slot(call, word, request.done_value, status, behind.get());
}

// Which of the streams stands still is not known: it may be a kernel that waits for what the program does
// next.
CUresult handle_await_slot(Call& call) {
    protocol::AwaitSlot request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    for (PollInterval interval; !call.session.leaves() && !call.session.poisoned(); interval.sleep()) {
        CUresult known = CUDA_ERROR_INVALID_HANDLE;
        for (uint32_t i = 0; i < protocol::kStagingSlots; ++i) {
            if (request.done_values[i] == 0) continue;
            const CUresult status = slot_status(call, i, request.done_values[i]);
            if (status == CUDA_ERROR_INVALID_HANDLE) continue;
            known = CUDA_ERROR_NOT_READY;
            if (status == CUDA_ERROR_NOT_READY) continue;
            call.out.scalar(i);
            return status;
        }
        if (known == CUDA_ERROR_INVALID_HANDLE) return known;
    }
    return CUDA_ERROR_DEINITIALIZED;
}

}  // namespace smt::runtime::server::handlers
