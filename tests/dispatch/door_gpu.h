// A GPU for streams whose kernels have doors. It does what is on the program's stream when the test says so,
// unit by unit, and what is on the stream where its launches are confined; what is on the server's own
// streams it does at once. Nothing but events orders the two. Memory is the host's.
#pragma once

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "driver_api.gen.h"
#include "rewriter/device/door.h"

namespace smt::tests {

class DoorGpu {
public:
    static constexpr int kSms = 4, kFits = 2;
    static constexpr uint32_t kOwnBytes = 16;  // of parameters; the first word is the launch's name
    static inline const CUstream kProgram = reinterpret_cast<CUstream>(0x77);
    static inline const CUstream kAway = reinterpret_cast<CUstream>(0x78);
    static inline const CUfunction kFailsAway = reinterpret_cast<CUfunction>(0x98);
    static inline const CUfunction kFails = reinterpret_cast<CUfunction>(0x99);  // no launch of it succeeds

    using Unit = std::pair<uint32_t, uint32_t>;  // launch and index
    std::vector<Unit> ran;                       // in order
    std::atomic<size_t> launches{0};             // that the driver has accepted
    std::atomic<size_t> launches_away{0};        // of those
    std::atomic<size_t> ways{0};                 // waits for events
    std::atomic<bool> lost{false};               // markers are refused, as after a fault
    bool away_first = true;                      // of two operations that might both be next

    DoorGpu() { device = this; }
    ~DoorGpu() {
        for (void* each : memory_) std::free(each);
    }
    DoorGpu(const DoorGpu&) = delete;

    // Something else of the program's, behind what is on its stream.
    void enqueue_other(uint32_t name, CUstream stream = kProgram) {
        enqueue(stream, [this, name] { ran.emplace_back(name, kOther); });
    }
    static constexpr uint32_t kOther = ~0u;  // in place of an index
    // Something that takes the time of a unit.
    void enqueue_unit() {
        const std::lock_guard lock(mutex_);
        queues_[0].push_back([](uint64_t& units) { return units != 0 && units--; });
    }

    // Does what is on the program's stream and on the other one, but at most so many units.
    void run(uint64_t units = ~0ull) {
        const std::lock_guard lock(mutex_);
        for (bool moved = true; moved;) {
            moved = advance(away_first ? 1 : 0, units);
            moved |= advance(away_first ? 0 : 1, units);
        }
    }
    // Does what is on the program's stream, and no more than that needs.
    std::atomic<bool> goes_on_when_asked{false};  // the program's stream, to its end, by cuStreamQuery()
    void finish_program() {
        const std::lock_guard lock(mutex_);
        uint64_t units = ~0ull;
        while (advance(0, units), !queues_[0].empty() && !queues_[1].empty() && queues_[1].front()(units))
            queues_[1].pop_front();
    }

    static DriverApi driver();
    static void add_green_contexts(DriverApi& driver);

    // What is on a stream. `units`: those that may still run; true: it is over.
    using Operation = std::function<bool(uint64_t& units)>;
    static DoorGpu& the() { return *device; }
    void push(Operation operation, size_t counts = 1) {  // as so many launches
        const std::lock_guard lock(mutex_);
        launches += counts;
        queues_[0].push_back(std::move(operation));
    }

private:
    static inline DoorGpu* device = nullptr;

    template <typename Do>
    CUresult enqueue(CUstream stream, Do operation) {
        if (stream != kProgram && stream != kAway) return operation(), CUDA_SUCCESS;
        const std::lock_guard lock(mutex_);
        queue_of(stream).push_back([operation](uint64_t&) { return operation(), true; });
        return CUDA_SUCCESS;
    }
    std::deque<Operation>& queue_of(CUstream stream) { return queues_[stream == kAway ? 1 : 0]; }
    bool advance(size_t which, uint64_t& units) {
        std::deque<Operation>& queue = queues_[which];
        bool moved = false;
        for (; !queue.empty() && queue.front()(units); moved = true) queue.pop_front();
        return moved;
    }
    template <typename T>
    static void store(CUdeviceptr at, T value) {
        std::atomic_ref(*reinterpret_cast<T*>(at)).store(value);
    }

public:
    // As the prologue: rewriter/device/door_text.cpp.
    static bool admits(const DoorLaunch& door, uint32_t unit) {
        const uint32_t stopped = std::atomic_ref(*reinterpret_cast<uint32_t*>(door.stopped)).load();
        if (!admits_one(door, unit, stopped)) return false;
        if (!(door.step.how & kDoorDecides) || unit + 1 != door.to) return true;
        std::atomic_ref next(*reinterpret_cast<uint32_t*>(door.frontier + sizeof(uint32_t)));
        const uint32_t word = next.load();
        if (stopped >= door.run)
            next.store(word | kFinalFrontier);
        else if (word == 0)
            next.store(kBegunFrontier);
        return true;
    }

private:
    static bool admits_one(const DoorLaunch& door, uint32_t unit, uint32_t stopped) {
        std::atomic_ref frontier(*reinterpret_cast<uint32_t*>(door.frontier));
        const uint32_t word = frontier.load(), limit = word & (kBegunFrontier - 1), shift = door.step.shift;
        if (word & kBegunFrontier && unit - door.from < door.step.early) return true;
        const bool exact = door.step.how & kDoorExact && unit - door.from >= door.step.early;
        if (unit < limit && (exact || (unit >> shift << shift) != unit)) return true;
        if (word & kFinalFrontier) return unit < limit;
        if (stopped >= door.run) return frontier.store(word | kFinalFrontier), unit < limit;
        const uint32_t behind_group = (unit | door.step.how >> kDoorGroupAt) + 1;
        const uint32_t moved =
            (exact ? behind_group : ((unit >> shift) + 2) << shift) | (word & kBegunFrontier);
        if (moved > word) frontier.store(moved);
        return true;
    }
    CUresult launch(CUfunction function, CUstream stream, uint32_t blocks, void** extra) {
        if (function == kFails) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        if (stream == kAway && function == kFailsAway) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        const std::lock_guard lock(mutex_);
        CHECK((stream == kProgram || stream == kAway));
        uint32_t name = 0;
        DoorLaunch door;
        CHECK(*static_cast<size_t*>(extra[3]) == kOwnBytes + sizeof door);
        std::memcpy(&name, extra[1], sizeof name);
        std::memcpy(&door, static_cast<char*>(extra[1]) + kOwnBytes, sizeof door);
        if (door.run == 0) door.to = blocks;  // not to be stopped
        ++launches;
        if (stream == kAway) ++launches_away;
        queue_of(stream).push_back([this, name, door, unit = door.from](uint64_t& units) mutable {
            for (; unit < door.to; ++unit) {
                if (units == 0) return false;
                if (door.run == 0 || admits(door, unit)) ran.emplace_back(name, unit), --units;
            }
            return true;
        });
        return CUDA_SUCCESS;
    }

    std::mutex mutex_;                             // guards the rest: the dispatcher's thread launches, too
    std::array<std::deque<Operation>, 2> queues_;  // the program's stream, and the other one
    std::vector<void*> memory_;
    struct Event {
        std::atomic<uint64_t> recorded{0}, over{0};
    };
    std::vector<std::unique_ptr<Event>> events_;
};

// A set for each number of SMs; all of them have one stream.
inline void DoorGpu::add_green_contexts(DriverApi& driver) {
    driver.cuDeviceGetDevResource = [](CUdevice, CUdevResource* all, CUdevResourceType) {
        all->sm.smCount = kSms;
        all->sm.minSmPartitionSize = 1;
        return CUDA_SUCCESS;
    };
    driver.cuDevSmResourceSplitByCount = [](CUdevResource* parts, unsigned* count, const CUdevResource*,
                                            CUdevResource*, unsigned, unsigned) {
        *count = kSms;
        for (int i = 0; parts && i < kSms; ++i) parts[i].sm.smCount = 1;
        return CUDA_SUCCESS;
    };
    driver.cuDevResourceGenerateDesc = [](CUdevResourceDesc*, CUdevResource*, unsigned) {
        return CUDA_SUCCESS;
    };
    driver.cuGreenCtxCreate = [](CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned) { return CUDA_SUCCESS; };
    driver.cuModuleLoadDataEx = [](CUmodule*, const void*, unsigned, CUjit_option*, void**) {
        return CUDA_ERROR_NOT_SUPPORTED;  // no probe
    };
    driver.cuGreenCtxStreamCreate = [](CUstream* stream, CUgreenCtx, unsigned, int) {
        *stream = kAway;
        return CUDA_SUCCESS;
    };
    driver.cuStreamGetPriority = [](CUstream, int* priority) {
        *priority = 0;
        return CUDA_SUCCESS;
    };
}

inline DriverApi DoorGpu::driver() {
    DriverApi driver{};
    driver.cuCtxGetStreamPriorityRange = [](int* least, int* greatest) {
        *least = *greatest = 0;
        return CUDA_SUCCESS;
    };
    driver.cuStreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
        *stream = reinterpret_cast<CUstream>(0x11);
        return CUDA_SUCCESS;
    };
    driver.cuEventCreate = [](CUevent* event, unsigned) {
        const std::lock_guard lock(device->mutex_);
        device->events_.push_back(std::make_unique<Event>());
        *event = reinterpret_cast<CUevent>(device->events_.back().get());
        return CUDA_SUCCESS;
    };
    driver.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
    driver.cuEventRecord = [](CUevent event, CUstream stream) {
        auto* const recorded = reinterpret_cast<Event*>(event);
        if (device->lost) return CUDA_ERROR_ILLEGAL_ADDRESS;
        ++recorded->recorded;
        return device->enqueue(stream, [recorded] { ++recorded->over; });
    };
    driver.cuEventQuery = [](CUevent event) {
        const auto* const recorded = reinterpret_cast<Event*>(event);
        return recorded->over < recorded->recorded ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    driver.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
        const auto* const awaited = reinterpret_cast<Event*>(event);
        const std::lock_guard lock(device->mutex_);
        ++device->ways;
        device->queue_of(stream).push_back(
            [awaited, until = awaited->recorded.load()](uint64_t&) { return awaited->over.load() >= until; });
        return CUDA_SUCCESS;
    };
    add_green_contexts(driver);
    driver.cuStreamDestroy_v2 = [](CUstream) { return CUDA_SUCCESS; };
    driver.cuStreamSynchronize = [](CUstream stream) {
        if (stream == kProgram) device->finish_program();
        return CUDA_SUCCESS;
    };
    driver.cuStreamQuery = [](CUstream stream) {
        if (stream == kProgram && device->goes_on_when_asked) device->finish_program();
        return CUDA_ERROR_NOT_READY;
    };
    driver.cuMemHostRegister_v2 = [](void*, size_t, unsigned) { return CUDA_SUCCESS; };
    driver.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
    driver.cuMemAlloc_v2 = [](CUdeviceptr* memory, size_t bytes) {
        void* const fresh = std::malloc(bytes);
        std::memset(fresh, 0xa5, bytes);
        *memory = reinterpret_cast<CUdeviceptr>(fresh);
        const std::lock_guard lock(device->mutex_);
        device->memory_.push_back(fresh);
        return CUDA_SUCCESS;
    };
    driver.cuMemFree_v2 = [](CUdeviceptr) { return CUDA_SUCCESS; };
    driver.cuMemsetD8Async = [](CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
        return device->enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(at), value, bytes); });
    };
    driver.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, size_t bytes, CUstream) {
        std::memcpy(reinterpret_cast<void*>(to), from, bytes);
        return CUDA_SUCCESS;
    };
    driver.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
        return device->enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
    };
    driver.cuStreamWriteValue32_v2 = [](CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned) {
        return device->enqueue(stream, [=] { store<uint32_t>(at, value); });
    };
    driver.cuStreamWriteValue64_v2 = [](CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned) {
        if (device->lost) return CUDA_ERROR_ILLEGAL_ADDRESS;
        return device->enqueue(stream, [=] { store<uint64_t>(at, value); });
    };
    driver.cuStreamBatchMemOp_v2 = [](CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned) {
        return CUDA_SUCCESS;
    };
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* fits, CUfunction, int, size_t) {
        *fits = kFits;
        return CUDA_SUCCESS;
    };
    driver.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction function, void**, void** extra) {
        return device->launch(function, config->hStream, config->gridDimX, extra);
    };
    // A managed form: it is over at once, without anything done.
    driver.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, CUstream, void**, void**) {
        const std::lock_guard lock(device->mutex_);
        ++device->launches;
        return CUDA_SUCCESS;
    };
    return driver;
}

}  // namespace smt::tests
