// What every function of the runtime begins and ends with: the driver below us, the thread's device
// and context, its last error.
//
// Rules of the place, as for libsmt.so: libc only, no exceptions, no static constructors or
// destructors (programs call us from exit handlers), nothing printed but what a variable asks for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "driver_api.gen.h"

namespace smt::cudart {

inline constexpr int kMaxDevices = 32;

extern DriverApi driver_api;  // filled when begin_early() has succeeded
inline const DriverApi& driver() { return driver_api; }

// The driver is there and initialised. Otherwise the reason why not.
cudaError_t begin_early();
// Also, the thread has a context: the one it made current itself, else its device's primary one.
cudaError_t begin();
// Keeps an error as the thread's last one, and returns it. That something is not ready is an answer.
cudaError_t finish(cudaError_t error);

// The two error enumerations have had the same numbers since CUDA 10.1.
inline cudaError_t from_driver(CUresult status) {
    return status == CUDA_ERROR_CONTEXT_ALREADY_CURRENT ? cudaErrorUnknown : static_cast<cudaError_t>(status);
}

struct ThreadState {
    cudaError_t last;
    int device;  // chosen with cudaSetDevice
};
extern constinit thread_local ThreadState thread_state;

// The calling thread's, inside of begin() and finish().
CUcontext current();
cudaError_t current_device(int* device);
// Makes the primary context of a device the thread's.
cudaError_t use_device(int device);
cudaError_t check_device(int device);
CUcontext primary_context(int device);  // retained already; null: it is not
// Forgets the device's primary context and all that was loaded into it.
void forget_primary(int device);
// Counts these resets: what was loaded at another count is gone. Never 0.
uint32_t generation();

// Where work goes, and whether the call waits for it.
struct Order {
    CUstream stream;
    bool waits;
};
inline CUstream or_default(CUstream stream, CUstream default_stream) {
    return stream ? stream : default_stream;
}

// The driver's form of a call for an order: SYNC or its per-thread twin waits, ASYNC takes the stream.
#define SMT_IN_ORDER(order, SYNC, ASYNC, ...)                                               \
    (!(order).waits                           ? driver().ASYNC(__VA_ARGS__, (order).stream) \
     : (order).stream == CU_STREAM_PER_THREAD ? driver().SYNC##_ptds(__VA_ARGS__)           \
                                              : driver().SYNC(__VA_ARGS__))

}  // namespace smt::cudart
