// Device memory. The server allocates it in the tenant's device range. The client only records it, so that
// pointers can be classified and freed once only.
#include "interpose/driver/memory.h"

#include "driver.gen.h"
#include "interpose/driver/call_despite_error.h"
#include "interpose/driver/capture.h"
#include "interpose/driver/context.h"
#include "interpose/driver/order.h"
#include "interpose/driver/peers.h"
#include "interpose/driver/refuse.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/output.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using protocol::MemAllocated;
using protocol::Op;

namespace {

// The alignment of rows, which suits every access and texture on every device.
constexpr uint64_t kPitchAlignment = 512;

CUresult note(const Range& range, Op free) {
    CUresult status = add_range(range);
    if (status != CUDA_SUCCESS) give_back(free, range.base);
    return status;
}

CUresult allocate_in_order(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    if (!address || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    uint32_t reference;
    if (!stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = order_after(stream);
    if (status != CUDA_SUCCESS) return status;
    MemAllocated allocated{};
    {
        RemoteCall call(Op::kMemAllocAsync, sizeof(protocol::MemAllocAsync));
        if (!call.open()) return call.status();
        call.in(protocol::MemAllocAsync{bytes, reinterpret_cast<uint64_t>(pool), reference, 0});
        status = call.wait();
        if (status == CUDA_SUCCESS) call.out(&allocated);
    }
    note_use(stream);
    if (status == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) refuse("cuMemAllocAsync");
    if (status != CUDA_SUCCESS) return status;
    Range range{.base = allocated.address,
                .bytes = bytes,
                .handle = reinterpret_cast<uint64_t>(pool),
                .memory = Memory::kPool};
    status = note(range, Op::kMemFree);
    if (status == CUDA_SUCCESS) *address = allocated.address;
    return status;
}

}  // namespace

CUresult allocate(Op op, Memory memory, uint64_t bytes, uint32_t flags, uint64_t& address) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    MemAllocated allocated{};
    {
        RemoteCall call(op, sizeof(protocol::MemAlloc));
        if (!call.open()) return call.status();
        call.in(protocol::MemAlloc{bytes, flags, memory == Memory::kManaged});
        CUresult status = call.wait();
        if (status != CUDA_SUCCESS) return status;
        call.out(&allocated);
    }
    if (allocated.address == 0) return CUDA_ERROR_UNKNOWN;
    Range range{.base = allocated.address, .bytes = bytes, .flags = flags, .memory = memory};
    CUresult status = note(range, op == Op::kMemAlloc ? Op::kMemFree : Op::kHostFree);
    if (status == CUDA_SUCCESS) address = allocated.address;
    return status;
}

CUresult give_back(Op op, uint64_t address) {
    CUresult earlier = order_after_all();
    CUresult status = call_despite_error(op, protocol::Address{address}, earlier);
    after_sync();
    return earlier == CUDA_SUCCESS ? status : earlier;
}

CUresult finish_all_work() {
    CUresult earlier = order_after_all();
    CUresult status = call_despite_error(Op::kContextSynchronize, earlier);
    return earlier == CUDA_SUCCESS ? status : earlier;
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
    if (!free && !total) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(require_context());
    RemoteCall call(Op::kMemInfo, 0);
    if (!call.open()) return call.status();
    SMT_TRY(call.wait());
    protocol::MemInfo info{};
    call.out(&info);
    if (free) *free = info.free;
    if (total) *total = info.total;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
    if (!dptr) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(require_context());
    uint64_t address = 0;
    SMT_TRY(allocate(Op::kMemAlloc, Memory::kDevice, bytesize, 0, address));
    if (several_sessions()) [[unlikely]]
        if (const CUresult status = open_to_peers(address); status != CUDA_SUCCESS)
            return cuMemFree_v2(address), status;
    *dptr = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t width, size_t height,
                            unsigned int element) {
    bool known_element = element == 4 || element == 8 || element == 16;
    if (!dptr || !pPitch || width == 0 || height == 0 || !known_element) return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = (width + kPitchAlignment - 1) & ~(kPitchAlignment - 1);
    size_t bytes;
    if (pitch < width || __builtin_mul_overflow(pitch, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = cuMemAlloc_v2(dptr, bytes);
    if (status == CUDA_SUCCESS) *pPitch = pitch;
    return status;
}

// The range leaves the map first: once the server has the memory back, another thread may get the same
// address.
CUresult cuMemFree_v2(CUdeviceptr dptr) {
    if (dptr == 0) return CUDA_SUCCESS;
    Range range;
    if (!find_range(dptr, range) || range.base != dptr) return CUDA_ERROR_INVALID_VALUE;
    bool managed = range.memory == Memory::kManaged;
    if (managed && range.handle) return CUDA_ERROR_INVALID_VALUE;  // a module's variable
    if (!managed && range.memory != Memory::kDevice && range.memory != Memory::kPool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!take_range(dptr, range)) return CUDA_ERROR_INVALID_VALUE;
    if (range.peers) close_to_peers(range);
    return give_back(managed ? Op::kHostFree : Op::kMemFree, dptr);
}

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream stream) {
    return allocate_in_order(dptr, bytesize, nullptr, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream stream) {
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    return allocate_in_order(dptr, bytesize, pool, stream);
}

// Memory in no range may be a graph's, which only the server knows, or was freed before: its result is waited
// for. So it is in a capture: only memory that a capture allocated can be freed there, and the next call may
// end the capture.
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream) {
    if (dptr == 0) return CUDA_ERROR_INVALID_VALUE;
    uint32_t reference;
    if (!stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    Range range;
    const bool known = find_range(dptr, range);
    if (known) {
        bool device = range.memory == Memory::kPool || range.memory == Memory::kDevice;
        if (!device || range.base != dptr) return CUDA_ERROR_INVALID_VALUE;
    }
    if (known && range.peers) {  // it is closed at once, when the peers' work is done
        close_to_peers(range);
        range.peers = 0;
    }
    CUresult status = order_after(stream);
    if (status != CUDA_SUCCESS) return status;
    {
        RemoteCall call(Op::kMemFreeAsync, sizeof(protocol::MemFreeAsync));
        if (!call.open()) return call.status();
        take_range(dptr, range);
        call.in(protocol::MemFreeAsync{dptr, reference, 0});
        status = !known || any_capture_active() ? or_late_error(call.wait()) : call.post();
        if (known && !call.made()) add_range(range);
    }
    note_use(stream);
    return status;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
    Range range;
    if (!find_range(dptr, range)) return CUDA_ERROR_NOT_FOUND;
    if (range.memory == Memory::kNoted) return CUDA_ERROR_NOT_SUPPORTED;
    if (range.memory == Memory::kVirtual) {
        MemAllocated mapping{};
        SMT_TRY(find_mapping(range, dptr, mapping));
        range.base = mapping.address;
        range.bytes = mapping.bytes;
    }
    if (pbase) *pbase = range.base;
    if (psize) *psize = range.bytes;
    return CUDA_SUCCESS;
}

}  // namespace smt::interpose::driver
