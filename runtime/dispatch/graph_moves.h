// Kernels with doors that do what fill nodes of graphs do, and copy nodes within device memory, so that a
// graph with such nodes can be stopped (graph_doors.h).
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

#include "driver_api.gen.h"
#include "rewriter/device/door.h"

namespace smt::runtime::dispatch {

// The launch that stands for a node. It fills `to` with `value`, or copies from `from`, in elements.
struct MoveLaunch {
    static constexpr uint32_t kThreads = 256, kEach = 8;  // elements of a thread
    CUfunction function = nullptr;
    uint64_t to = 0, to_pitch = 0;  // address, and bytes from a row to the next
    uint64_t from = 0, from_pitch = 0;
    uint64_t width = 0, count = 0;  // elements of a row, and of all
    uint32_t value = 0;
    uint32_t blocks = 0;
    bool copies = false;

    // As a kernel node has them, the door's last. Valid while this object is.
    std::span<void*> parameters();

private:
    smt::DoorLaunch door_{};
    std::array<void*, 8> each_{};
};

// The kernels, loaded once. Any thread.
class GraphMoves {
public:
    explicit GraphMoves(const DriverApi& driver) : driver_(driver) {}
    GraphMoves(const GraphMoves&) = delete;
    GraphMoves& operator=(const GraphMoves&) = delete;

    bool loaded() const;
    CUresult load();  // waits as a load does: quiesce.h
    // Precondition: loaded(). NOT_SUPPORTED: no kernel does that, as arrays, host memory, and boxes of
    // several layers.
    CUresult plan(const CUDA_MEMSET_NODE_PARAMS& node, MoveLaunch* launch) const;
    // `on_device`: whether a unified address is one of device memory.
    using OnDevice = std::function<bool(CUdeviceptr address)>;
    CUresult plan(const CUDA_MEMCPY3D& node, const OnDevice& on_device, MoveLaunch* launch) const;

private:
    static constexpr uint32_t kSizes[] = {1, 2, 4, 16};  // bytes of an element

    CUresult give_function(uint32_t bytes, MoveLaunch* launch) const;

    const DriverApi& driver_;
    mutable std::mutex mutex_;  // guards the rest
    CUfunction fills_[4] = {}, copies_[4] = {};
    bool loaded_ = false;
};

}  // namespace smt::runtime::dispatch
