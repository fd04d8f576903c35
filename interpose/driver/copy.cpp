// From a Transfer to its path: the location of its ends, and whether the processor may copy.
#include "interpose/driver/copy.h"

#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/capture.h"
#include "interpose/driver/carried.h"
#include "interpose/driver/order.h"
#include "interpose/driver/ranges.h"
#include "interpose/driver/refuse.h"
#include "interpose/driver/remapped_pages.h"
#include "interpose/driver/session_work.h"
#include "interpose/driver/staging.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/output.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose::driver {

using protocol::Copy;
using protocol::CopyAnswer;
using protocol::Op;

namespace {

// kShared: pinned, managed or registered host memory, at its address in the arena.
enum class Home { kDevice, kShared, kPageable };

}  // namespace

bool normalise(CopyEnd& end, uint64_t width, uint64_t height, uint64_t depth, uint64_t& span) {
    if (end.place == Place::kArray) return true;
    if (end.pitch == 0) end.pitch = end.x_bytes + width;
    if (end.height == 0 || (depth == 1 && end.z == 0)) end.height = end.y + height;
    if (end.x_bytes + width < width || end.x_bytes + width > end.pitch || end.y + height > end.height)
        return false;
    uint64_t slice, before, last, rows;
    if (__builtin_mul_overflow(end.pitch, end.height, &slice) ||
        __builtin_mul_overflow(slice, end.z, &before) || __builtin_mul_overflow(slice, depth - 1, &last) ||
        __builtin_mul_overflow(end.pitch, height - 1, &rows) ||
        __builtin_add_overflow(last, rows + width, &span) ||
        __builtin_add_overflow(before, end.y * end.pitch + end.x_bytes, &before) ||
        __builtin_add_overflow(end.address, before, &end.address) || end.address + span < end.address)
        return false;
    end.x_bytes = end.y = end.z = 0;
    return true;
}

CUstreamCaptureStatus capture_of(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (any_capture_active()) [[unlikely]]
        if (capture_status(stream, &status) != CUDA_SUCCESS) return CU_STREAM_CAPTURE_STATUS_NONE;
    return status;
}

namespace {

// Finds the location of the `span` bytes at a linear end and sets `address` and `place` to the server's view.
// Memory only partly in an arena range is the application's own, so it is pageable.
CUresult locate(CopyEnd& end, uint64_t span, Home& home) {
    if (end.place == Place::kArray) return home = Home::kDevice, CUDA_SUCCESS;
    if (end.place != Place::kHost && end.place != Place::kDevice && end.place != kUnified)
        return CUDA_ERROR_INVALID_VALUE;
    if (end.address == 0) return CUDA_ERROR_INVALID_VALUE;
    Range range;
    bool known = find_range(end.address, range);
    // The driver chooses the addresses of variables, so a host pointer may have the same value.
    if (known && range.memory == Memory::kGlobal && end.place == Place::kHost)
        known = looks_like_device(end.address);
    if (!known) {
        bool host = end.place == Place::kHost || (end.place == kUnified && !looks_like_device(end.address));
        home = host ? Home::kPageable : Home::kDevice;
    } else if (on_device(range.memory)) {
        if (!range.holds(end.address, span) || !range.reached_from(*thread_session))
            return CUDA_ERROR_INVALID_VALUE;
        home = Home::kDevice;
    } else if (range.memory == Memory::kNoted || !range.holds(end.address, span) ||
               range.session != thread_session) {
        home = Home::kPageable;
    } else {
        if (range.memory == Memory::kRegistered) end.address = range.translated(end.address);
        home = Home::kShared;
    }
    end.place = home == Home::kDevice ? Place::kDevice : Place::kHost;
    return CUDA_SUCCESS;
}

// Joins rows without gaps at both ends into one long row.
void join_rows(Transfer& t) {
    if (t.to.place == Place::kArray || t.from.place == Place::kArray) return;
    bool packed = t.to.pitch == t.width && t.from.pitch == t.width;
    if (!packed && t.height > 1) return;
    if (t.depth > 1 && (!packed || t.to.height != t.height || t.from.height != t.height)) return;
    t.width *= t.height * t.depth;
    t.height = t.depth = 1;
    t.to.pitch = t.from.pitch = t.width;
    t.to.height = t.from.height = 1;
}

// Facts about an end beyond its Transfer.
struct Located {
    Home home = Home::kDevice;
    uint64_t span = 0;  // bytes from its address on, gaps between rows included
};

CUresult prepare(Transfer& t, Located& to, Located& from) {
    if (!normalise(t.to, t.width, t.height, t.depth, to.span) ||
        !normalise(t.from, t.width, t.height, t.depth, from.span))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = locate(t.to, to.span, to.home);
    if (status == CUDA_SUCCESS) status = locate(t.from, from.span, from.home);
    if (status == CUDA_SUCCESS) join_rows(t);
    return status;
}

// For a copy that runs later and repeatedly: pageable memory is remapped to the arena, or arena memory stands
// in for it.
CUresult lend_end(const Transfer& t, CopyEnd& end, Located& located, Direction direction, void*& carrier) {
    if (located.home != Home::kPageable) return CUDA_SUCCESS;
    CUresult status = remap(end.address, located.span, end.address);
    if (status == CUDA_ERROR_NOT_SUPPORTED) {
        StandIn made;
        status = stand_in(end, located.span, t, direction, made);
        if (status != CUDA_SUCCESS) return status;
        carrier = made.carrier;
        end = linear_end(Place::kHost, made.arena);
        end.pitch = t.width, end.height = t.height;
    }
    if (status == CUDA_SUCCESS) located.home = Home::kShared;
    return status;
}

Copy record_of(const Transfer& t, uint32_t stream, CopyAnswer answer) {
    return {t.to, t.from, t.width, t.height, t.depth, stream, answer, 0, 0, 0};
}

// Waits for the reply, sent when the copy is done, or with in_device when it is enqueued: no caller can see
// the difference.
CUresult copy_answered(const Transfer& t, uint32_t reference, bool in_device) {
    RemoteCall call(Op::kCopy, sizeof(Copy));
    if (!call.open()) return call.status();
    call.in(record_of(t, reference, in_device ? CopyAnswer::kEnqueued : CopyAnswer::kDone));
    return or_late_error(call.wait());
}

// A short copy's end is seen in the word that the GPU writes, which saves the server's check and reply. A
// staging slot supplies the word; its bytes stay unused.
CUresult copy_watched(const Transfer& t, uint32_t reference) {
    StagingSlot slot{};
    CUresult status = acquire_slot(slot, reference);
    if (status != CUDA_SUCCESS) return status;
    {
        RemoteCall call(Op::kCopy, sizeof(Copy));
        if (call.open()) {
            Copy record = record_of(t, reference, CopyAnswer::kWord);
            record.done_value = slot.done_value;
            record.slot = slot.index;
            call.in(record);
            call.post_quietly();
        }
        if (call.status() != CUDA_SUCCESS) {
            abandon_slot(slot);
            return call.status();
        }
    }
    return or_late_error(wait_slot(slot));
}

CUresult copy_posted(const Transfer& t, uint32_t reference) {
    RemoteCall call(Op::kCopy, sizeof(Copy));
    if (!call.open()) return call.status();
    call.in(record_of(t, reference, CopyAnswer::kEnqueued));
    return call.post();
}

// A longer copy exceeds the client's spin on a word, so the thread sleeps for a reply instead.
constexpr uint64_t kLongestWatched = 2u << 20;

CUresult copy_directly(const Transfer& t, CUstream stream, uint32_t reference, Manner manner,
                       bool in_device) {
    CUresult status;
    if (manner == Manner::kAsynchronous) {
        status = copy_posted(t, reference);
    } else if (in_device || t.width * t.height * t.depth > kLongestWatched) {
        status = copy_answered(t, reference, in_device);
    } else {
        status = copy_watched(t, reference);
    }
    note_use(stream);
    if (manner == Manner::kSynchronous && !in_device) after_sync();
    return status;
}

// Both ends are memory of this process: waits for the stream's earlier work, then copies on the processor.
CUresult copy_here(const Transfer& t, CUstream stream) {
    CUresult status = synchronize_stream(stream);
    if (status != CUDA_SUCCESS) return status;
    for (uint64_t z = 0; z < t.depth; ++z)
        for (uint64_t y = 0; y < t.height; ++y)
            std::memmove(reinterpret_cast<void*>(row_address(t.to, y, z)),
                         reinterpret_cast<const void*>(row_address(t.from, y, z)), t.width);
    return late_error();
}

// The current end of a capture: the next node depends on the `count` nodes.
struct Captured {
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    size_t count = 0;
};

CUresult look_at_capture(CUstream stream, Captured& captured) {
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUresult status = driver::cuStreamGetCaptureInfo_v3(stream, &state, &id, &captured.graph, &captured.nodes,
                                                        nullptr, &captured.count);
    return status == CUDA_SUCCESS && state != CU_STREAM_CAPTURE_STATUS_ACTIVE
               ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               : status;
}

CUresult capture_carried(const GraphCopy& copy, CUstream stream) {
    Captured captured;
    CUgraph child = nullptr;
    CUgraphNode node = nullptr;
    CUresult status = make_carried(copy.copy, copy.before, copy.behind, &child);
    if (status != CUDA_SUCCESS) return status;
    status = look_at_capture(stream, captured);
    if (status == CUDA_SUCCESS)
        status =
            driver::cuGraphAddChildGraphNode(&node, captured.graph, captured.nodes, captured.count, child);
    driver::cuGraphDestroy(child);
    if (status != CUDA_SUCCESS) return status;
    return driver::cuStreamUpdateCaptureDependencies_v2(stream, &node, nullptr, 1,
                                                        CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

CUresult resolve_located(Transfer& t, Located& to, Located& from, GraphCopy& copy) {
    copy = {};
    CUresult status = lend_end(t, t.to, to, Direction::kFromArena, copy.behind);
    if (status == CUDA_SUCCESS) status = lend_end(t, t.from, from, Direction::kToArena, copy.before);
    if (status == CUDA_SUCCESS) copy.copy = record_of(t, 0, CopyAnswer::kEnqueued);
    return status;
}

// A captured copy of pageable memory.
CUresult capture_pageable(Transfer& t, CUstream stream, uint32_t reference, Manner manner, Located& to,
                          Located& from) {
    if (manner == Manner::kSynchronous) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    GraphCopy copy;
    CUresult status = resolve_located(t, to, from, copy);
    if (status == CUDA_ERROR_NOT_SUPPORTED) {
        refuse("cuMemcpyAsync");  // for every form of the call
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (status == CUDA_SUCCESS) status = order_after(stream);
    if (status != CUDA_SUCCESS) return status;
    return copy.carried() ? capture_carried(copy, stream)
                          : copy_directly(t, stream, reference, manner, false);
}

}  // namespace

CUresult transfer(Transfer t, CUstream stream, Manner manner) {
    if (several_sessions()) [[unlikely]]
        return transfer_anywhere(t, stream, manner);
    return transfer_here(t, stream, manner);
}

CUresult transfer_here(Transfer t, CUstream stream, Manner manner) {
    if (t.width == 0 || t.height == 0 || t.depth == 0) return CUDA_SUCCESS;
    Located to_end, from_end;
    CUresult status = prepare(t, to_end, from_end);
    if (status != CUDA_SUCCESS) return status;
    uint32_t reference;
    if (!stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    Home to = to_end.home;
    Home from = from_end.home;
    bool pageable = to == Home::kPageable || from == Home::kPageable;
    if (pageable) {
        CUstreamCaptureStatus capture = capture_of(stream);
        if (capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)
            return capture_pageable(t, stream, reference, manner, to_end, from_end);
    }
    if (pageable && to != Home::kDevice && from != Home::kDevice) return copy_here(t, stream);

    status = order_after(stream);
    if (status != CUDA_SUCCESS) return status;
    if (!pageable) {
        bool in_device = to == Home::kDevice && from == Home::kDevice;
        return copy_directly(t, stream, reference, manner, in_device);
    }
    status = copy_through_staging(t, to == Home::kDevice, reference, manner);
    note_use(stream);
    if (manner == Manner::kSynchronous || from == Home::kDevice) after_sync();
    return status;
}

CUresult resolve_for_graph(Transfer t, GraphCopy& copy) {
    if (t.width == 0 || t.height == 0 || t.depth == 0) return CUDA_ERROR_INVALID_VALUE;
    Located to, from;
    CUresult status = prepare(t, to, from);
    return status == CUDA_SUCCESS ? resolve_located(t, to, from, copy) : status;
}

}  // namespace smt::interpose::driver
