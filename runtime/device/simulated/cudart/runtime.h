// The prologue and epilogue of every runtime function: the driver, the thread's device and context, its last
// error.
//
// Rules, as for libsmt.so: libc only, no exceptions, no static constructors or destructors (programs call the
// runtime from exit handlers), no output except what an environment variable requests.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "driver_api.gen.h"

namespace smt::cudart {

inline constexpr int kMaxDevices = 32;

// What cudaRuntimeGetVersion says, and whose entry points programs get: each of the libraries has its own.
extern const int kRuntimeVersion;

extern DriverApi driver_api;  // filled by a successful begin_early()
inline const DriverApi& driver() { return driver_api; }

// Ensures that the driver is loaded and initialised; else returns the error.
cudaError_t begin_early();
// Also ensures that the thread has a context: the one that it made current, else its device's primary one.
cudaError_t begin();
// Stores an error as the thread's last one and returns it. "Not ready" is a result, no error.
cudaError_t finish(cudaError_t error);

// The two error enumerations have had the same numbers since CUDA 10.1.
inline cudaError_t from_driver(CUresult status) {
    return status == CUDA_ERROR_CONTEXT_ALREADY_CURRENT ? cudaErrorUnknown : static_cast<cudaError_t>(status);
}

struct ThreadState {
    cudaError_t last;
    int device;  // set by cudaSetDevice
};
extern constinit thread_local ThreadState thread_state;

// The calling thread's context and device. Valid between begin() and finish().
CUcontext current();
cudaError_t current_device(int* device);
// Makes the device's primary context current in the thread.
cudaError_t use_device(int device);
cudaError_t check_device(int device);
CUcontext primary_context(int device);  // null: not retained yet
// Forgets the device's primary context and everything loaded into it.
void forget_primary(int device);
// The number of these resets, from 1. What was loaded in another generation is gone.
uint32_t generation();

// The stream of a call, and whether the call waits.
struct Order {
    CUstream stream;
    bool waits;
};
inline CUstream or_default(CUstream stream, CUstream default_stream) {
    return stream ? stream : default_stream;
}

// Calls the driver's form for an order: SYNC or its per-thread variant waits, ASYNC takes the stream.
#define SMT_IN_ORDER(order, SYNC, ASYNC, ...)                                               \
    (!(order).waits                           ? driver().ASYNC(__VA_ARGS__, (order).stream) \
     : (order).stream == CU_STREAM_PER_THREAD ? driver().SYNC##_ptds(__VA_ARGS__)           \
                                              : driver().SYNC(__VA_ARGS__))

}  // namespace smt::cudart
