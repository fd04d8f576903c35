// Order between the lanes of one process. A use of a stream or event is stored as a position in a lane. The
// next lane that uses the object posts kWaitLane with that position, and the server holds the lane there. A
// lane waits only for older records, so no cycle can form.
//
// Example: thread A launches on stream s (lane 0, position 480) and signals thread B; B launches on s. B's
// lane gets { kWaitLane{0, 480}, kLaunch }, or only the launch when lane 0 has passed 480 already.
#include "interpose/driver/order.h"

#include "interpose/driver/objects.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

namespace {

constexpr uint32_t kLaneShift = 48;
constexpr uint64_t kPositionMask = (1ull << kLaneShift) - 1;

constinit PerSession<LastUse> legacy_use;  // of the legacy stream

// Whether the only lane, if any, is the calling thread's. If not, the thread opens its own lane first, since
// it would otherwise wait for the lane that it is about to get.
bool alone(CUresult& status) {
    status = CUDA_SUCCESS;
    uint32_t count = session_lanes.here().count.load(std::memory_order_relaxed);
    if (count == 0 || (count == 1 && thread_lane)) return true;
    return !this_lane(status);
}

CUresult wait_for(uint32_t index, uint64_t position) {
    Lane& lane = session_lanes.here().at(index);
    if (&lane == thread_lane || lane.live.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
    if (lane.header->head.load(std::memory_order_acquire) >= position) return CUDA_SUCCESS;
    RemoteCall call(protocol::Op::kWaitLane, sizeof(protocol::WaitLane));
    if (!call.open()) return call.status();
    call.in(protocol::WaitLane{index, 0, position});
    return call.post_quietly();
}

CUresult wait_for(const LastUse& last) {
    uint64_t use = last.load(std::memory_order_relaxed);
    if (use == 0) return CUDA_SUCCESS;
    return wait_for(static_cast<uint32_t>(use >> kLaneShift) - 1, use & kPositionMask);
}

CUresult wait_for_every_lane() {
    Lanes& lanes = session_lanes.here();
    uint32_t count = lanes.count.load(std::memory_order_seq_cst);
    for (uint32_t i = 0; i < count; ++i) {
        CUresult status = wait_for(i, lanes.at(i).posted.load(std::memory_order_relaxed));
        if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
}

void note(LastUse& last) {
    Lane* lane = thread_lane;
    if (!lane) return;
    uint64_t position = lane->posted.load(std::memory_order_relaxed) & kPositionMask;
    last.store((uint64_t{lane->index} + 1) << kLaneShift | position, std::memory_order_relaxed);
}

}  // namespace

CUresult order_after(CUstream stream) {
    CUresult status;
    if (alone(status)) return status;
    if (stream == CU_STREAM_LEGACY) return wait_for_every_lane();
    if (stream == CU_STREAM_PER_THREAD) return wait_for(legacy_use.here());
    Stream* object = find_stream(stream);
    if (!object) return CUDA_ERROR_INVALID_HANDLE;
    status = wait_for(object->last_use);
    if (status == CUDA_SUCCESS && (object->flags & CU_STREAM_NON_BLOCKING) == 0)
        status = wait_for(legacy_use.here());
    return status;
}

CUresult order_after(Event& event) {
    CUresult status;
    if (alone(status)) return status;
    // Another thread may have launched the graph that records it.
    return event.by_graph.load(std::memory_order_relaxed) ? wait_for_every_lane() : wait_for(event.last_use);
}

CUresult order_after_all() {
    CUresult status;
    return alone(status) ? status : wait_for_every_lane();
}

void note_use(CUstream stream) {
    if (stream == CU_STREAM_PER_THREAD) return;
    if (stream == CU_STREAM_LEGACY) return note(legacy_use.here());
    if (Stream* object = find_stream(stream)) note(object->last_use);
}

void note_use(Event& event) { note(event.last_use); }

bool stream_ref(CUstream stream, uint32_t& ref) {
    if (stream == CU_STREAM_LEGACY) return ref = protocol::kLegacyStream, true;
    if (stream == CU_STREAM_PER_THREAD) return ref = protocol::kPerThreadStream, true;
    Stream* object = find_stream(stream);
    if (!object || object->session != thread_session) return false;
    ref = object->id;
    return true;
}

}  // namespace smt::interpose
