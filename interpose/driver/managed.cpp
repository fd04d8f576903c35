// Managed memory: host memory in the arena that the device reaches at the same address. Nothing migrates, so
// prefetching does nothing, and advice changes only the results of queries. Advice for a part of an
// allocation is stored for all of it.
#include "driver.gen.h"
#include "interpose/driver/context.h"
#include "interpose/driver/memory.h"
#include "interpose/driver/order.h"
#include "interpose/driver/place.h"
#include "interpose/driver/ranges.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {
namespace {

constexpr CUmemLocation kNowhere = {CU_MEM_LOCATION_TYPE_INVALID, {}};

bool on_host(const CUmemLocation& place) {
    return place.type == CU_MEM_LOCATION_TYPE_HOST || place.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           place.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult check_place(const CUmemLocation& place) {
    if (on_host(place)) return CUDA_SUCCESS;
    if (place.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    return place_of_session(place.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult check_managed(CUdeviceptr address, size_t count) {
    Range range;
    if (count == 0 || !find_range(address, range)) return CUDA_ERROR_INVALID_VALUE;
    return range.memory == Memory::kManaged && range.holds(address, count) ? CUDA_SUCCESS
                                                                           : CUDA_ERROR_INVALID_VALUE;
}

struct Advice {
    CUmem_advise advice;
    CUmemLocation place;
};

void take_advice(Range& range, const void* state) {
    const Advice& given = *static_cast<const Advice*>(state);
    switch (given.advice) {
        case CU_MEM_ADVISE_SET_READ_MOSTLY:
            range.read_mostly = true;
            break;
        case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
            range.read_mostly = false;
            break;
        case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
            range.preferred = given.place;
            break;
        case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
            range.preferred = kNowhere;
            break;
        case CU_MEM_ADVISE_SET_ACCESSED_BY:
            range.accessed_by |= !on_host(given.place);
            break;
        case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
            range.accessed_by &= on_host(given.place);
            break;
        default:
            break;
    }
}

void take_prefetch(Range& range, const void* state) {
    range.prefetched = *static_cast<const CUmemLocation*>(state);
}

int32_t device_of(const CUmemLocation& place) {
    if (place.type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
    return on_host(place) ? CU_DEVICE_CPU : place.id;
}

CUresult answer(const Range& range, int32_t* values, size_t bytes, CUmem_range_attribute attribute) {
    if (bytes < sizeof(int32_t) || bytes % sizeof(int32_t) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && bytes != sizeof(int32_t))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
            *values = range.read_mostly;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
            *values = device_of(range.preferred);
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
            *values = device_of(range.prefetched);
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
            *values = range.preferred.type;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
            *values = range.preferred.id;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
            *values = range.prefetched.type;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
            *values = range.prefetched.id;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
            for (size_t i = 0; i < bytes / sizeof(int32_t); ++i) values[i] = CU_DEVICE_INVALID;
            if (range.accessed_by) values[0] = range.session->device();
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
    bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
    if (!dptr || !known) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(require_context());
    uint64_t address = 0;
    CUresult status = allocate(protocol::Op::kHostAlloc, Memory::kManaged, bytesize, flags, address);
    if (status == CUDA_SUCCESS) *dptr = address;
    return status;
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(check_managed(devPtr, count));
    bool placed = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice >= CU_MEM_ADVISE_SET_ACCESSED_BY;
    if (placed) SMT_TRY(check_place(location));
    Advice given{advice, location};
    change_range(devPtr, take_advice, &given);
    return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                               CUstream stream) {
    uint32_t reference;
    if (!stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(check_managed(devPtr, count));
    SMT_TRY(check_place(location));
    change_range(devPtr, take_prefetch, &location);
    return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute,
                                CUdeviceptr devPtr, size_t count) {
    if (!data) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(check_managed(devPtr, count));
    Range range;
    if (!find_range(devPtr, range)) return CUDA_ERROR_INVALID_VALUE;
    return answer(range, static_cast<int32_t*>(data), dataSize, attribute);
}

CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count) {
    if (!data || !dataSizes || !attributes || numAttributes == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numAttributes; ++i) {
        CUresult status = driver::cuMemRangeGetAttribute(data[i], dataSizes[i], attributes[i], devPtr, count);
        if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
}

}  // namespace smt::interpose::driver
