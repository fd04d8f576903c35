// One device with one primary context.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>

#include "fake.h"

using namespace fake;

namespace {

constexpr char kName[] = "Fake GPU";
constexpr char kBusId[] = "0000:01:00.0";
constexpr int kMultiprocessors = 4;

std::atomic<bool> initialised{false};
std::atomic<int> retained{0};
char context_of_device;
const CUcontext kContext = reinterpret_cast<CUcontext>(&context_of_device);
thread_local std::vector<CUcontext> current;

bool valid(CUdevice device) { return device == 0; }

int attribute(CUdevice_attribute which) {
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 << 10;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return 227 << 10;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: return 65536;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return kMultiprocessors;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 9;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return 0;
        case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
        case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: return 512;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED: return 1;
        default: return 0;
    }
}

struct Name {
    CUresult error;
    const char* name;
};
constexpr Name kNames[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
};

}  // namespace

FAKE_EXPORT CUresult cuInit(unsigned flags) {
    FAKE_ASKED(cuInit);
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    initialised = true;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDriverGetVersion(int* version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
    *name = nullptr;
    for (const Name& each : kNames) {
        if (each.error == error) *name = each.name;
    }
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
FAKE_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) { return cuGetErrorName(error, text); }

FAKE_EXPORT CUresult cuDeviceGetCount(int* count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDeviceGetCount);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *count = 1;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDeviceGet);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *device = ordinal;
    return valid(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE_EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
    if (!name || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDeviceGetName);
    snprintf(name, bytes, "%s", kName);
    return valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDeviceGetUuid_v2);
    for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(0xf0 + i);
    return valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }
FAKE_EXPORT CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
    FAKE_ASKED(cuDeviceGetPCIBusId);
    if (!id || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(id, bytes, "%s", kBusId);
    return valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDeviceGetByPCIBusId);
    *device = 0;
    return strcmp(id, kBusId) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDeviceTotalMem_v2);
    *bytes = memory_bytes();
    return valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDeviceGetAttribute, "%d", which);
    *value = attribute(which);
    return valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE_EXPORT CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice) {
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    *major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDevicePrimaryCtxRetain);
    if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    ++retained;
    *context = kContext;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
    FAKE_ASKED(cuDevicePrimaryCtxRelease_v2);
    return retained-- > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned flags) {
    FAKE_ASKED(cuDevicePrimaryCtxSetFlags_v2, "flags=%u", flags);
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuDevicePrimaryCtxGetState);
    *flags = 0;
    *active = retained > 0;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    FAKE_ASKED(cuCtxSetCurrent);
    if (!current.empty()) current.pop_back();
    if (context) current.push_back(context);
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = current.empty() ? nullptr : current.back();
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    current.push_back(context);
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context) *context = current.back();
    current.pop_back();
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return current.empty() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    FAKE_ASKED(cuCtxGetStreamPriorityRange);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_SUCCESS;
}

namespace {

std::map<CUlimit, size_t>& limits() {
    static auto* limits = new std::map<CUlimit, size_t>{{CU_LIMIT_STACK_SIZE, 1024},
                                                        {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                                                        {CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20}};
    return *limits;
}

}  // namespace

FAKE_EXPORT CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuCtxGetLimit, "%d", limit);
    Lock lock(world());
    auto found = limits().find(limit);
    if (found == limits().end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = found->second;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    FAKE_ASKED(cuCtxSetLimit, "%d=%zu", limit, value);
    Lock lock(world());
    if (!limits().contains(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    limits()[limit] = value;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache) {
    FAKE_ASKED(cuCtxSetCacheConfig);
    return CUDA_SUCCESS;
}
// Not the real layout: the address and the rank, so that a test sees what arrived.
FAKE_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address,
                                            const cuuint64_t* sizes, const cuuint64_t*, const cuuint32_t*,
                                            const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    if (!map) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuTensorMapEncodeTiled, "rank=%u", rank);
    if (rank == 0 || rank > 5) return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    map->opaque[0] = reinterpret_cast<uint64_t>(address);
    map->opaque[1] = rank;
    for (cuuint32_t i = 0; i < rank; ++i) map->opaque[2 + i] = sizes[i];
    return CUDA_SUCCESS;
}
