// One device with one primary context.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>

#include "runtime/device/hosted/backend.h"
#include "runtime/protocol/simulated_gpus.h"

using namespace smt::runtime::device::hosted;

namespace {

std::atomic<bool> initialised{false};
std::atomic<int> retained{0};
char context_of_device;
const CUcontext kContext = reinterpret_cast<CUcontext>(&context_of_device);
thread_local std::vector<CUcontext> current;

bool valid(CUdevice device) { return backend().gpu(device) >= 0; }

struct Name {
    CUresult error;
    const char* name;
};
#define NAMED(error) {error, #error}
constexpr Name kNames[] = {
    NAMED(CUDA_SUCCESS),
    NAMED(CUDA_ERROR_INVALID_VALUE),
    NAMED(CUDA_ERROR_OUT_OF_MEMORY),
    NAMED(CUDA_ERROR_NOT_INITIALIZED),
    NAMED(CUDA_ERROR_INVALID_HANDLE),
    NAMED(CUDA_ERROR_NOT_FOUND),
    NAMED(CUDA_ERROR_NOT_READY),
    NAMED(CUDA_ERROR_NOT_SUPPORTED),
    NAMED(CUDA_ERROR_INVALID_IMAGE),
    NAMED(CUDA_ERROR_INVALID_PTX),
    NAMED(CUDA_ERROR_NO_BINARY_FOR_GPU),
    NAMED(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    NAMED(CUDA_ERROR_ILLEGAL_ADDRESS),
    NAMED(CUDA_ERROR_MISALIGNED_ADDRESS),
    NAMED(CUDA_ERROR_LAUNCH_TIMEOUT),
    NAMED(CUDA_ERROR_LAUNCH_FAILED),
    NAMED(CUDA_ERROR_ASSERT),
    NAMED(CUDA_ERROR_ILLEGAL_INSTRUCTION),
    NAMED(CUDA_ERROR_INVALID_ADDRESS_SPACE),
    NAMED(CUDA_ERROR_INVALID_PC),
    NAMED(CUDA_ERROR_HARDWARE_STACK_ERROR),
    NAMED(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
    NAMED(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND),
    NAMED(CUDA_ERROR_INVALID_CONTEXT),
    NAMED(CUDA_ERROR_INVALID_DEVICE),
    NAMED(CUDA_ERROR_ALREADY_MAPPED),
    NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    NAMED(CUDA_ERROR_STREAM_CAPTURE_ISOLATION),
    NAMED(CUDA_ERROR_ILLEGAL_STATE),
    NAMED(CUDA_ERROR_UNSUPPORTED_LIMIT),
};
#undef NAMED

}  // namespace

DRIVER_EXPORT CUresult cuInit(unsigned flags) {
    DRIVER_ASKED(cuInit);
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    initialised = true;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuDriverGetVersion(int* version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
    *name = nullptr;
    for (const Name& each : kNames) {
        if (each.error == error) *name = each.name;
    }
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
    return cuGetErrorName(error, text);
}

DRIVER_EXPORT CUresult cuDeviceGetCount(int* count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDeviceGetCount);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    for (*count = 0; valid(*count);) ++*count;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDeviceGet);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *device = ordinal;
    return valid(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
DRIVER_EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
    if (!name || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDeviceGetName);
    snprintf(name, bytes, "%s", backend().device_name());
    return valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
DRIVER_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDeviceGetUuid_v2);
    if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    smt::protocol::write_simulated_uuid(backend().gpu(device), uuid->bytes);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    return cuDeviceGetUuid_v2(uuid, device);
}
DRIVER_EXPORT CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
    DRIVER_ASKED(cuDeviceGetPCIBusId);
    if (!id || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    smt::protocol::write_simulated_bus_id(backend().gpu(device), id, bytes);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDeviceGetByPCIBusId);
    for (*device = 0; valid(*device); ++*device) {
        char own[16];
        smt::protocol::write_simulated_bus_id(backend().gpu(*device), own, sizeof own);
        if (strcmp(id, own) == 0) return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}
DRIVER_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDeviceTotalMem_v2);
    *bytes = backend().memory_bytes();
    return valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
DRIVER_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDeviceGetAttribute, "%d", which);
    if (which <= 0 || which >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    *value = which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? smt::protocol::simulated_bus(backend().gpu(device))
                                                     : backend().attribute(which);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice) {
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    *major = backend().attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = backend().attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDevicePrimaryCtxRetain);
    if (!valid(device)) return CUDA_ERROR_INVALID_DEVICE;
    ++retained;
    *context = kContext;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
    DRIVER_ASKED(cuDevicePrimaryCtxRelease_v2);
    return retained-- > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
DRIVER_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned flags) {
    DRIVER_ASKED(cuDevicePrimaryCtxSetFlags_v2, "flags=%u", flags);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuDevicePrimaryCtxGetState);
    *flags = 0;
    *active = retained > 0;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    DRIVER_ASKED(cuCtxSetCurrent);
    if (!current.empty()) current.pop_back();
    if (context) current.push_back(context);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = current.empty() ? nullptr : current.back();
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    current.push_back(context);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context) *context = current.back();
    current.pop_back();
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return current.empty() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    DRIVER_ASKED(cuCtxGetStreamPriorityRange);
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

size_t smt::runtime::device::hosted::limit(CUlimit which) {
    Lock lock(world());
    auto found = limits().find(which);
    return found == limits().end() ? 0 : found->second;
}

DRIVER_EXPORT CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuCtxGetLimit, "%d", limit);
    Lock lock(world());
    auto found = limits().find(limit);
    if (found == limits().end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = found->second;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    DRIVER_ASKED(cuCtxSetLimit, "%d=%zu", limit, value);
    Lock lock(world());
    if (!limits().contains(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    limits()[limit] = value;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache) {
    DRIVER_ASKED(cuCtxSetCacheConfig);
    return CUDA_SUCCESS;
}
