// Devices: selection, reset, versions, and the driver's own entry points.
#include <string.h>

#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/array.h"
#include "runtime/device/simulated/cudart/convert.h"

namespace smt::cudart {

namespace {

// The flags that cudaSetDeviceFlags accepts; the driver's names have the same values.
constexpr unsigned kDeviceFlags =
    cudaDeviceScheduleMask | cudaDeviceMapHost | cudaDeviceLmemResizeToMax | cudaDeviceSyncMemops;

cudaError_t entry_point(const char* symbol, void** function, unsigned version, unsigned long long flags,
                        cudaDriverEntryPointQueryResult* answer, CUstream default_stream) {
    if (!symbol || !function) return cudaErrorInvalidValue;
    if (flags == cudaEnableDefault && default_stream == CU_STREAM_PER_THREAD)
        flags = cudaEnablePerThreadDefaultStream;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult status = driver().cuGetProcAddress_v2(symbol, function, int(version), flags, &found);
    if (answer) *answer = static_cast<cudaDriverEntryPointQueryResult>(found);
    if (status != CUDA_ERROR_NOT_FOUND) return from_driver(status);
    *function = nullptr;
    return answer ? cudaSuccess : cudaErrorSymbolNotFound;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
    if (!count) return cudaErrorInvalidValue;
    CUresult status = driver().cuDeviceGetCount(count);
    if (status != CUDA_SUCCESS) return from_driver(status);
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDevice(int* device) { return device ? current_device(device) : cudaErrorInvalidValue; }

cudaError_t cudaSetDevice(int device) { return use_device(device); }

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
    if (cudaError_t failed = check_device(device)) return failed;
    if (flags & ~cudaInitDeviceFlagsAreValid) return cudaErrorInvalidValue;
    if (flags & cudaInitDeviceFlagsAreValid) {
        if (device_flags & ~kDeviceFlags) return cudaErrorInvalidValue;
        if (CUresult status =
                driver().cuDevicePrimaryCtxSetFlags_v2(device, device_flags & ~cudaDeviceMapHost))
            return from_driver(status);
    }
    // Prepares the device; the thread's selected device stays.
    int chosen = thread_state.device;
    CUcontext before = current();
    cudaError_t failed = use_device(device);
    thread_state.device = chosen;
    driver().cuCtxSetCurrent(before);
    return failed;
}

// The first device: all that a program sees are alike.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
    if (!device || !wanted) return cudaErrorInvalidValue;
    if (cudaError_t failed = check_device(0)) return cudaErrorNoDevice == failed ? failed : cudaErrorNoDevice;
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
    if (count < 0 || (count > 0 && !devices)) return cudaErrorInvalidValue;
    for (int i = 0; i < count; ++i) {
        if (cudaError_t failed = check_device(devices[i])) return failed;
    }
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    if (flags & ~kDeviceFlags) return cudaErrorInvalidValue;
    int device = 0;
    current_device(&device);
    return from_driver(driver().cuDevicePrimaryCtxSetFlags_v2(device, flags & ~cudaDeviceMapHost));
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
    if (!flags) return cudaErrorInvalidValue;
    int device = 0, active = 0;
    current_device(&device);
    CUresult status = current() ? driver().cuCtxGetFlags(flags)
                                : driver().cuDevicePrimaryCtxGetState(device, flags, &active);
    *flags |= cudaDeviceMapHost;
    return from_driver(status);
}

cudaError_t cudaDeviceReset() {
    int device = 0;
    current_device(&device);
    if (!primary_context(device)) return cudaSuccess;
    CUresult status = driver().cuDevicePrimaryCtxReset_v2(device);
    forget_primary(device);
    if (status == CUDA_SUCCESS) thread_state.last = cudaSuccess;  // a sticky error went with the context
    return from_driver(status);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    if (flags != 0) return cudaErrorInvalidValue;
    int device = 0;
    current_device(&device);
    if (cudaError_t failed = check_device(peer)) return failed;
    if (peer == device) return cudaErrorInvalidDevice;
    if (cudaError_t failed = use_device(peer)) return failed;  // it gets its primary context
    if (cudaError_t failed = use_device(device)) return failed;
    return from_driver(driver().cuCtxEnablePeerAccess(primary_context(peer), 0));
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* elements, const cudaChannelFormatDesc* format,
                                                 int device) {
    if (!elements || !format) return cudaErrorInvalidValue;
    CUarray_format driver_format;
    unsigned channels;
    if (cudaError_t failed = driver_channels(*format, driver_format, channels)) return failed;
    return from_driver(
        driver().cuDeviceGetTexture1DLinearMaxWidth(elements, driver_format, channels, device));
}

cudaError_t cudaDriverGetVersion(int* version) {
    if (!version) return cudaErrorInvalidValue;
    return from_driver(driver().cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    if (!version) return finish(cudaErrorInvalidValue);
    *version = kRuntimeVersion;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* answer, CUstream default_stream) {
    return entry_point(symbol, function, unsigned(kRuntimeVersion), flags, answer, default_stream);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* answer,
                                             CUstream default_stream) {
    return entry_point(symbol, function, version, flags, answer, default_stream);
}

}  // namespace smt::cudart
