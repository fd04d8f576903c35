// Copies: every cuMemcpy function becomes one Transfer, and transfer() carries it out.
//
//   copy_linear.cpp, copy_shapes.cpp, copy_batch.cpp   the entry points: arguments -> Transfer
//   copy.cpp            Transfer -> where its ends lie -> the way it goes
//   copy_staged.cpp     the way through the staging slots, piece by piece
//
//   ends                                way
//   neither is pageable memory          one kCopy record
//   one is pageable, the other's the    pieces through the lane's staging slots, all slots under way
//     device's
//   the processor reaches both, and     wait for the stream's earlier work, then memcpy
//     one is pageable
//   in a graph, one is pageable         its pages are remapped to the arena (remapped_pages.h), then one record; where that
//                                       cannot be, a host function carries its bytes (carried.h)
//
// When it returns: a synchronous call when the copy is done, except between places of the device,
// where it is enqueued; an asynchronous call when it is enqueued, and for pageable memory when the
// source was read (to the device) or the destination written (from the device), as the driver does.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/record.h"

namespace smt::interpose::driver {

using protocol::CopyEnd;
using protocol::Place;

// A pointer that may be anything; resolved before anything is sent.
inline constexpr Place kUnified = static_cast<Place>(CU_MEMORYTYPE_UNIFIED);

struct Transfer {
    CopyEnd to, from;
    uint64_t width, height, depth;  // bytes, rows, slices
};

enum class Manner { kSynchronous, kAsynchronous };

inline CopyEnd linear_end(Place place, uint64_t address) { return {place, 0, address, 0, 0, 0, 0, 0}; }
inline CopyEnd host_end(const void* host) {
    return linear_end(Place::kHost, reinterpret_cast<uint64_t>(host));
}
inline CopyEnd device_end(CUdeviceptr device) { return linear_end(Place::kDevice, device); }
inline CopyEnd unified_end(CUdeviceptr address) { return linear_end(kUnified, address); }
inline CopyEnd array_end(CUarray array, uint64_t offset) {
    return {Place::kArray, 0, reinterpret_cast<uint64_t>(array), offset, 0, 0, 0, 0};
}
inline Transfer linear(const CopyEnd& to, const CopyEnd& from, uint64_t bytes) {
    return {to, from, bytes, 1, 1};
}

// The Transfer of a driver's descriptor. `D` is CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER.
template <typename D>
Transfer shaped(const D& copy) {
    auto end = [](CUmemorytype type, const void* host, CUdeviceptr device, CUarray array) {
        uint64_t address = type == CU_MEMORYTYPE_HOST    ? reinterpret_cast<uint64_t>(host)
                           : type == CU_MEMORYTYPE_ARRAY ? reinterpret_cast<uint64_t>(array)
                                                         : device;
        return linear_end(static_cast<Place>(type), address);
    };
    CopyEnd to = end(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray);
    CopyEnd from = end(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray);
    to.lod = static_cast<uint32_t>(copy.dstLOD);
    from.lod = static_cast<uint32_t>(copy.srcLOD);
    to.x_bytes = copy.dstXInBytes, to.y = copy.dstY, to.z = copy.dstZ;
    from.x_bytes = copy.srcXInBytes, from.y = copy.srcY, from.z = copy.srcZ;
    to.pitch = copy.dstPitch, to.height = copy.dstHeight;
    from.pitch = copy.srcPitch, from.height = copy.srcHeight;
    return {to, from, copy.WidthInBytes, copy.Height, copy.Depth};
}

// `stream` is canonical: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a created stream.
CUresult transfer(Transfer transfer, CUstream stream, Manner manner);

// A copy that runs later, and again: its ends resolved, the rest of the record left 0. What host functions carry
// before it and behind it (carried.h); null: nothing.
struct GraphCopy {
    protocol::Copy copy;
    void* before;
    void* behind;
    bool carried() const { return before || behind; }
};
// NOT_SUPPORTED when an end is memory that nothing brings to the device.
CUresult resolve_for_graph(Transfer transfer, GraphCopy& copy);

// Between copy.cpp and copy_staged.cpp. A transfer whose linear ends begin at `address` and have
// their pitch and height filled in, with one pageable end.
CUresult copy_through_staging(const Transfer& transfer, bool to_device, uint32_t stream, Manner manner);
// Address of row `y` of slice `z` of a linear end.
inline uint64_t row_address(const CopyEnd& end, uint64_t y, uint64_t z) {
    return end.address + (z * end.height + y) * end.pitch;
}

}  // namespace smt::interpose::driver
