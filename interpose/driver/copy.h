// Copies: every cuMemcpy function becomes one Transfer, and transfer() carries it out.
//
//   copy_linear.cpp, copy_shapes.cpp, copy_batch.cpp   the entry points: arguments -> Transfer
//   copy.cpp            Transfer -> location of its ends -> path
//   copy_staged.cpp     the path through the staging slots, piece by piece
//   copy_across.cpp     where the process has several sessions: memory of which device
//
//   ends                                path
//   neither is pageable memory          one kCopy record
//   one is pageable, the other's the    pieces through the lane's staging slots, all slots in flight
//     device's
//   the processor reaches both, and     wait for the stream's earlier work, then memcpy
//     one is pageable
//   in a graph, one is pageable         its pages are remapped to the arena (remapped_pages.h), then
//                                       one record; where that fails, a host function copies its
//                                       bytes (carried.h)
//
// A synchronous call returns when the copy is done, except between places of the device, where it returns
// when the copy is enqueued. An asynchronous call returns when the copy is enqueued; with pageable memory,
// when the source is read (to the device) or the destination written (from the device), as in the driver.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/record.h"

namespace smt::interpose::driver {

using protocol::CopyEnd;
using protocol::Place;

// A pointer of unknown kind; resolved before anything is sent.
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

// `stream` is canonical: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a created stream of this_session().
CUresult transfer(Transfer transfer, CUstream stream, Manner manner);
// The same where no end is another device's memory. Pinned memory of another session counts as pageable.
CUresult transfer_here(Transfer transfer, CUstream stream, Manner manner);
CUresult transfer_anywhere(const Transfer& transfer, CUstream stream, Manner manner);
CUstreamCaptureStatus capture_of(CUstream stream);
// Folds the start offsets of a linear end into its address and fills in pitch and height, so that all later
// arithmetic is row_address(). `span`: the bytes from there on. false: a row is wider than its pitch, even if
// it is the only one, or the numbers overflow.
bool normalise(CopyEnd& end, uint64_t width, uint64_t height, uint64_t depth, uint64_t& span);

// A copy that runs later and repeatedly: its ends resolved, the rest of the record 0. `before` and `behind`
// are the arguments of the host functions at its ends (carried.h); null: none.
struct GraphCopy {
    protocol::Copy copy;
    void* before;
    void* behind;
    bool carried() const { return before || behind; }
};
// NOT_SUPPORTED when an end is memory that cannot be brought to the device.
CUresult resolve_for_graph(Transfer transfer, GraphCopy& copy);

// Called by copy.cpp, defined in copy_staged.cpp. The transfer's linear ends start at `address`, have pitch
// and height filled in, and one of them is pageable.
CUresult copy_through_staging(const Transfer& transfer, bool to_device, uint32_t stream, Manner manner);
// Address of row `y` of slice `z` of a linear end.
inline uint64_t row_address(const CopyEnd& end, uint64_t y, uint64_t z) {
    return end.address + (z * end.height + y) * end.pitch;
}

}  // namespace smt::interpose::driver
