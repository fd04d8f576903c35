// Kernels with doors that fill, and copy within device memory. They stand for nodes of graphs, so that a
// graph with such nodes can be stopped (graph_doors.h), and for fills and copies on a stream behind launches
// with doors. The driver's own would overtake what a stop leaves of those.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "driver_api.gen.h"
#include "rewriter/device/door.h"
#include "runtime/dispatch/work.h"

namespace smt::runtime::dispatch {

// The launch that fills `to` with `value`, or copies from `from`, in elements.
struct MoveLaunch {
    static constexpr uint32_t kThreads = 256, kEach = 8;  // elements of a thread
    static constexpr uint64_t kBlockPs = 30'000;          // of device time, about: 32 KiB at a TB a second
    ManagedFunction* form = nullptr;                      // owned by Moves
    uint64_t to = 0, to_pitch = 0;                        // address, and bytes from a row to the next
    uint64_t from = 0, from_pitch = 0;
    uint64_t width = 0, count = 0;  // elements of a row, and of all
    uint32_t value = 0;
    uint32_t blocks = 0;
    bool copies = false;

    // As a kernel node has them, the door's last. Valid while this object is.
    std::span<void*> parameters();
    KernelCall call() const;

private:
    smt::DoorLaunch door_{};
    std::array<void*, 8> each_{};
};

// The kernels, loaded once. Any thread.
class Moves {
public:
    explicit Moves(const DriverApi& driver) : driver_(driver) {}
    Moves(const Moves&) = delete;
    Moves& operator=(const Moves&) = delete;

    bool loaded() const { return state_.load(std::memory_order_acquire) == State::kLoaded; }
    bool failed() const { return state_.load(std::memory_order_relaxed) == State::kFailed; }
    CUresult load();  // waits as a load does: quiesce.h. Once it has failed it fails at once
    // Precondition: loaded(). NOT_SUPPORTED: no kernel does that, as arrays, host memory, and boxes of
    // several layers.
    CUresult plan(const CUDA_MEMSET_NODE_PARAMS& node, MoveLaunch* launch);
    // `on_device`: whether a unified address is one of device memory.
    using OnDevice = std::function<bool(CUdeviceptr address)>;
    CUresult plan(const CUDA_MEMCPY3D& node, const OnDevice& on_device, MoveLaunch* launch);

    // The kernels by number, for a process that takes launches of them over: the same in all of one build.
    // Constant time; `form` of number() is any.
    static constexpr uint32_t kForms = 8;
    static constexpr size_t kBytes = 56;     // of a launch's parameters, call()'s
    ManagedFunction* form(uint32_t number);  // null: there is none, or not loaded()
    std::optional<uint32_t> number(const ManagedFunction& form) const;  // nothing: it is none of these
    // What a launch with these parameters, call()'s, of the kernel writes and reads, from the first byte to
    // the last: for a check of parameters from elsewhere. Nothing: they are none, or lead around the end of
    // the address space.
    struct Extent {
        uint64_t address, bytes;  // 0 bytes: none
    };
    struct Extents {
        Extent to, from;
    };
    static std::optional<Extents> extents(uint32_t number, const std::vector<char>& parameters);

private:
    static constexpr uint32_t kSizes[] = {1, 2, 4, 16};  // bytes of an element

    CUresult give_form(uint32_t bytes, MoveLaunch* launch);
    CUresult load_all();

    const DriverApi& driver_;
    std::mutex mutex_;  // held while they are loaded
    enum class State { kNew, kLoaded, kFailed };
    std::atomic<State> state_{State::kNew};
    ManagedFunction fills_[std::size(kSizes)], copies_[std::size(kSizes)];  // constant once loaded
};

}  // namespace smt::runtime::dispatch
