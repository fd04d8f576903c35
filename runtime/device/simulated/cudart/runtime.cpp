#include "runtime/device/simulated/cudart/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include <atomic>

namespace smt::cudart {

constinit DriverApi driver_api{};
constinit thread_local ThreadState thread_state{cudaSuccess, 0};

namespace {

constexpr char kDriverFile[] = "libcuda.so.1";  // libsmt.so's SONAME

constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<bool> ready{false};
constinit std::atomic<CUcontext> primaries[kMaxDevices]{};  // null: not retained, or reset
constinit CUcontext known[kMaxDevices]{};                   // each one's last value; written under the lock
constinit std::atomic<uint32_t> resets{1};

struct Locked {
    Locked() { pthread_mutex_lock(&lock); }
    ~Locked() { pthread_mutex_unlock(&lock); }
};

// A driver that lacks one of libsmt.so's entry points is another library of that name.
bool open_driver() {
    void* handle = dlopen(kDriverFile, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return false;
    for (const DriverApiName& name : kDriverApiNames) {
        void* address = dlsym(handle, name.symbol);
        if (!address) return false;
        memcpy(reinterpret_cast<char*>(&driver_api) + name.offset, &address, sizeof address);
    }
    return true;
}

// After a reset the value may still be current in a thread; it is invalid until the context is retained
// again.
bool is_dead_primary(CUcontext context) {
    Locked locked;
    for (int i = 0; i < kMaxDevices; ++i) {
        if (known[i] == context) return primaries[i].load(std::memory_order_relaxed) == nullptr;
    }
    return false;
}

}  // namespace

cudaError_t begin_early() {
    if (ready.load(std::memory_order_acquire)) [[likely]]
        return cudaSuccess;
    Locked locked;
    if (ready.load(std::memory_order_relaxed)) return cudaSuccess;
    if (!open_driver()) return cudaErrorInsufficientDriver;
    if (CUresult status = driver().cuInit(0)) return from_driver(status);
    ready.store(true, std::memory_order_release);
    return cudaSuccess;
}

cudaError_t begin() {
    if (cudaError_t failed = begin_early()) return failed;
    CUcontext context = nullptr;
    if (CUresult status = driver().cuCtxGetCurrent(&context)) return from_driver(status);
    if (context) {
        if (context == primaries[thread_state.device].load(std::memory_order_acquire)) return cudaSuccess;
        if (!is_dead_primary(context)) return cudaSuccess;
    }
    return use_device(thread_state.device);
}

cudaError_t finish(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady) [[unlikely]]
        thread_state.last = error;
    return error;
}

CUcontext current() {
    CUcontext context = nullptr;
    return driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

cudaError_t current_device(int* device) {
    CUdevice of_context = 0;
    if (current() && driver().cuCtxGetDevice(&of_context) == CUDA_SUCCESS)
        *device = of_context;
    else
        *device = thread_state.device;
    return cudaSuccess;
}

cudaError_t check_device(int device) {
    int count = 0;
    if (CUresult status = driver().cuDeviceGetCount(&count)) return from_driver(status);
    return device >= 0 && device < count && device < kMaxDevices ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t use_device(int device) {
    if (cudaError_t failed = check_device(device)) return failed;
    CUcontext context = primaries[device].load(std::memory_order_acquire);
    if (!context) {
        Locked locked;
        context = primaries[device].load(std::memory_order_relaxed);
        if (!context) {
            if (CUresult status = driver().cuDevicePrimaryCtxRetain(&context, device))
                return from_driver(status);
            known[device] = context;
            primaries[device].store(context, std::memory_order_release);
        }
    }
    if (CUresult status = driver().cuCtxSetCurrent(context)) return from_driver(status);
    thread_state.device = device;
    return cudaSuccess;
}

CUcontext primary_context(int device) {
    return device >= 0 && device < kMaxDevices ? primaries[device].load(std::memory_order_acquire) : nullptr;
}

void forget_primary(int device) {
    Locked locked;
    primaries[device].store(nullptr, std::memory_order_release);
    resets.fetch_add(1, std::memory_order_acq_rel);
}

uint32_t generation() { return resets.load(std::memory_order_acquire); }

}  // namespace smt::cudart
