// Facts about the fake device, and entry points that only the fake has.
#include <cstdlib>
#include <cstring>

#include "fake.h"

using namespace fake;

namespace fake {

int attribute(CUdevice_attribute which) {
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
            return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
            return 64;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
            return 2147483647;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
            return 65535;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
            return 48 << 10;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            return 227 << 10;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
            return 65536;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
            return 32;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return 4;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            return 2048;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            return 9;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            return 0;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
        case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
            return 512;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
            return 1;
        default:
            return 0;
    }
}

}  // namespace fake

// One private table, whose function needs a context in the process that calls it; a client of smt has none.
DRIVER_EXPORT CUresult cuGetExportTable(const void** table, const CUuuid* id) {
    static const void* features[2] = {reinterpret_cast<void*>(sizeof features),
                                      reinterpret_cast<const void*>(&abort)};
    if (memcmp(id->bytes, "\xcd\x3e\xa2\xc6", 4) != 0) return CUDA_ERROR_NOT_FOUND;
    *table = features;
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig*) {
    if (!size) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuOccupancyMaxPotentialClusterSize);
    *size = 8;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig* config) {
    if (!clusters || !config) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuOccupancyMaxActiveClusters, "attributes=%u", config->numAttrs);
    *clusters = 4;
    return CUDA_SUCCESS;
}
// Not the real layout: the address and the rank, so that a test sees what arrived.
DRIVER_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank,
                                              void* address, const cuuint64_t* sizes, const cuuint64_t*,
                                              const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                              CUtensorMapSwizzle, CUtensorMapL2promotion,
                                              CUtensorMapFloatOOBfill) {
    if (!map) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuTensorMapEncodeTiled, "rank=%u", rank);
    if (rank == 0 || rank > 5) return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    map->opaque[0] = reinterpret_cast<uint64_t>(address);
    map->opaque[1] = rank;
    for (cuuint32_t i = 0; i < rank; ++i) map->opaque[2 + i] = sizes[i];
    return CUDA_SUCCESS;
}
