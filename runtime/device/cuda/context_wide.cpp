#include "runtime/device/cuda/context_wide.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unordered_set>
#include <vector>

namespace smt::runtime::device {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(1);
// A new wait stands back so many polls for a call that finds no moment. No longer: the client that is
// held back may be the one that ends the waits there are.
constexpr int kPolite = 10;

struct State {
    DriverApi real;                                // written before any other thread is there
    std::shared_mutex gate;                        // shared: a wait is being enqueued; exclusive: a context-wide call
    std::vector<std::function<void()>> deferred;   // with the gate held exclusively
    std::atomic<int> wanted{0};                    // calls that look for their moment
    std::atomic<bool> host_nodes{false};           // some graph holds a host function
    std::mutex waiting_mutex;                      // after gate
    std::unordered_set<CUstream> waiting;          // given a wait, and not seen to be idle since
};

// Never destroyed: sessions' threads may outlive main().
State& state = *new State;
DriverApi& real = state.real;

// To query a stream that captures would break the capture.
bool captures(CUstream stream) {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return real.cuStreamIsCapturing(stream, &capture) == CUDA_SUCCESS && capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool nobody_waits() {
    std::lock_guard lock(state.waiting_mutex);
    std::erase_if(state.waiting, [](CUstream stream) {
        return !captures(stream) && real.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY;
    });
    return state.waiting.empty();
}

// With the gate held exclusively and nobody waiting.
void make_deferred() {
    for (const auto& call : state.deferred) call();
    state.deferred.clear();
}

template <auto member>
struct Guarded;

template <typename... Arguments, CUresult (*DriverApi::*member)(Arguments...)>
struct Guarded<member> {
    // NOT_READY when this is not the moment: for who can try again.
    static CUresult if_quiet(Arguments... arguments) {
        std::unique_lock lock(state.gate);
        if (!nobody_waits()) return CUDA_ERROR_NOT_READY;
        make_deferred();
        return (real.*member)(arguments...);
    }
    // At once, or with the next call of this kind that is made: nobody misses it.
    static CUresult soon(Arguments... arguments) {
        std::unique_lock lock(state.gate);
        if (nobody_waits()) {
            make_deferred();
            return (real.*member)(arguments...);
        }
        state.deferred.push_back([arguments...] { (real.*member)(arguments...); });
        return CUDA_SUCCESS;
    }
    static CUresult in_time(Arguments... arguments) {
        CUresult status = if_quiet(arguments...);
        if (status != CUDA_ERROR_NOT_READY) return status;
        state.wanted.fetch_add(1);
        while ((status = if_quiet(arguments...)) == CUDA_ERROR_NOT_READY) std::this_thread::sleep_for(kPoll);
        state.wanted.fetch_sub(1);
        return status;
    }
};

// Held while a wait is enqueued on the stream.
std::shared_lock<std::shared_mutex> begin_wait(CUstream stream) {
    for (int i = 0; i < kPolite && state.wanted.load() != 0; ++i) std::this_thread::sleep_for(kPoll);
    std::shared_lock lock(state.gate);
    std::lock_guard waiting_lock(state.waiting_mutex);
    state.waiting.insert(stream);
    return lock;
}

CUresult wait_value_32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    auto lock = begin_wait(stream);
    return real.cuStreamWaitValue32_v2(stream, address, value, flags);
}

CUresult wait_value_64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    auto lock = begin_wait(stream);
    return real.cuStreamWaitValue64_v2(stream, address, value, flags);
}

CUresult batch(CUstream stream, unsigned count, CUstreamBatchMemOpParams* list, unsigned flags) {
    const bool waits = std::any_of(list, list + (list ? count : 0), [](const CUstreamBatchMemOpParams& each) {
        return each.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || each.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    });
    if (!waits) return real.cuStreamBatchMemOp_v2(stream, count, list, flags);
    auto lock = begin_wait(stream);
    return real.cuStreamBatchMemOp_v2(stream, count, list, flags);
}

// On a stream it returns at once; in a graph it waits for the client.
CUresult host_function(CUstream stream, CUhostFn function, void* data) {
    if (captures(stream)) state.host_nodes.store(true);
    return real.cuLaunchHostFunc(stream, function, data);
}

CUresult host_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                   const CUDA_HOST_NODE_PARAMS* parameters) {
    state.host_nodes.store(true);
    return real.cuGraphAddHostNode(node, graph, dependencies, count, parameters);
}

CUresult graph_launch(CUgraphExec graph, CUstream stream) {
    if (!state.host_nodes.load(std::memory_order_relaxed)) return real.cuGraphLaunch(graph, stream);
    auto lock = begin_wait(stream);
    return real.cuGraphLaunch(graph, stream);
}

CUresult stream_destroy(CUstream stream) {
    {
        std::lock_guard lock(state.waiting_mutex);
        state.waiting.erase(stream);
    }
    return real.cuStreamDestroy_v2(stream);
}

}  // namespace

void guard_context_wide_calls(DriverApi& driver) {
    real = driver;
#define GUARD(name, guarded) \
    if (driver.name) driver.name = guarded
#define CONTEXT_WIDE(name, how) GUARD(name, Guarded<&DriverApi::name>::how)
    CONTEXT_WIDE(cuMemHostUnregister, if_quiet);
    CONTEXT_WIDE(cuMemFree_v2, soon);
    CONTEXT_WIDE(cuArrayDestroy, soon);
    CONTEXT_WIDE(cuMipmappedArrayDestroy, soon);
    CONTEXT_WIDE(cuModuleUnload, soon);
    CONTEXT_WIDE(cuLibraryUnload, soon);
    CONTEXT_WIDE(cuModuleLoadDataEx, in_time);
    CONTEXT_WIDE(cuLibraryGetModule, in_time);
    CONTEXT_WIDE(cuModuleGetFunction, in_time);
    CONTEXT_WIDE(cuKernelGetFunction, in_time);
    CONTEXT_WIDE(cuCtxSetLimit, in_time);
    CONTEXT_WIDE(cuGreenCtxCreate, in_time);
    GUARD(cuStreamWaitValue32_v2, wait_value_32);
    GUARD(cuStreamWaitValue64_v2, wait_value_64);
    GUARD(cuStreamBatchMemOp_v2, batch);
    GUARD(cuLaunchHostFunc, host_function);
    GUARD(cuGraphAddHostNode, host_node);
    GUARD(cuGraphLaunch, graph_launch);
    GUARD(cuStreamDestroy_v2, stream_destroy);
#undef CONTEXT_WIDE
#undef GUARD
}

}  // namespace smt::runtime::device
