#include "runtime/device/cuda/context_wide.h"

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

DriverApi real;                  // written before any other thread is there
std::shared_mutex gate;          // shared: a wait is being enqueued; exclusive: a context-wide call is made
std::vector<std::function<void()>> deferred;   // with the gate held exclusively
std::mutex waiting_mutex;        // after gate
std::unordered_set<CUstream> waiting;   // streams that were given a wait and are not yet seen to be idle

bool nobody_waits() {
    std::lock_guard lock(waiting_mutex);
    std::erase_if(waiting, [](CUstream stream) { return real.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY; });
    return waiting.empty();
}

// With the gate held exclusively and nobody waiting.
void make_deferred() {
    for (const auto& call : deferred) call();
    deferred.clear();
}

template <auto member>
struct Guarded;

template <typename... Arguments, CUresult (*DriverApi::*member)(Arguments...)>
struct Guarded<member> {
    // NOT_READY when this is not the moment: for who can try again.
    static CUresult if_quiet(Arguments... arguments) {
        std::unique_lock lock(gate);
        if (!nobody_waits()) return CUDA_ERROR_NOT_READY;
        make_deferred();
        return (real.*member)(arguments...);
    }
    // At once, or with the next call of this kind that is made: nobody misses it.
    static CUresult soon(Arguments... arguments) {
        std::unique_lock lock(gate);
        if (nobody_waits()) {
            make_deferred();
            return (real.*member)(arguments...);
        }
        deferred.push_back([arguments...] { (real.*member)(arguments...); });
        return CUDA_SUCCESS;
    }
    static CUresult in_time(Arguments... arguments) {
        while (true) {
            CUresult status = if_quiet(arguments...);
            if (status != CUDA_ERROR_NOT_READY) return status;
            std::this_thread::sleep_for(kPoll);
        }
    }
};

void note_wait(CUstream stream) {
    std::lock_guard lock(waiting_mutex);
    waiting.insert(stream);
}

CUresult wait_value_32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    std::shared_lock lock(gate);
    note_wait(stream);
    return real.cuStreamWaitValue32_v2(stream, address, value, flags);
}

CUresult wait_value_64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    std::shared_lock lock(gate);
    note_wait(stream);
    return real.cuStreamWaitValue64_v2(stream, address, value, flags);
}

CUresult batch_of_waits(CUstream stream, unsigned count, CUstreamBatchMemOpParams* list, unsigned flags) {
    std::shared_lock lock(gate);
    note_wait(stream);
    return real.cuStreamBatchMemOp_v2(stream, count, list, flags);
}

// A graph may hold host functions.
CUresult graph_launch(CUgraphExec graph, CUstream stream) {
    std::shared_lock lock(gate);
    note_wait(stream);
    return real.cuGraphLaunch(graph, stream);
}

CUresult stream_destroy(CUstream stream) {
    {
        std::lock_guard lock(waiting_mutex);
        waiting.erase(stream);
    }
    return real.cuStreamDestroy_v2(stream);
}

}  // namespace

void guard_context_wide_calls(DriverApi& driver) {
    real = driver;
#define GUARD(name, how) \
    if (driver.name) driver.name = Guarded<&DriverApi::name>::how
    GUARD(cuMemHostUnregister, if_quiet);
    GUARD(cuArrayDestroy, soon);
    GUARD(cuMipmappedArrayDestroy, soon);
    GUARD(cuModuleUnload, soon);
    GUARD(cuLibraryUnload, soon);
    GUARD(cuCtxSetLimit, in_time);
#undef GUARD
    driver.cuStreamWaitValue32_v2 = real.cuStreamWaitValue32_v2 ? wait_value_32 : nullptr;
    driver.cuStreamWaitValue64_v2 = wait_value_64;
    driver.cuStreamBatchMemOp_v2 = real.cuStreamBatchMemOp_v2 ? batch_of_waits : nullptr;
    driver.cuGraphLaunch = real.cuGraphLaunch ? graph_launch : nullptr;
    driver.cuStreamDestroy_v2 = stream_destroy;
}

}  // namespace smt::runtime::device
