// Copies of a run of bytes. The function's name states the kinds of the ends, but copy.cpp checks the
// addresses: a "host" pointer may be managed or even device memory. Functions with a variant for per-thread
// default streams get that stream as their last parameter.
#include "driver.gen.h"
#include "interpose/driver/copy.h"

namespace smt::interpose::driver {

// Synchronous.

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream) {
    return transfer(linear(unified_end(dst), unified_end(src), count), stream, Manner::kSynchronous);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t count, CUstream stream) {
    return transfer(linear(device_end(dst), host_end(src), count), stream, Manner::kSynchronous);
}

CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t count, CUstream stream) {
    return transfer(linear(host_end(dst), device_end(src), count), stream, Manner::kSynchronous);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream) {
    return transfer(linear(device_end(dst), device_end(src), count), stream, Manner::kSynchronous);
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t count, CUstream stream) {
    return transfer(linear(array_end(dst, offset), device_end(src), count), stream, Manner::kSynchronous);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t count, CUstream stream) {
    return transfer(linear(device_end(dst), array_end(src, offset), count), stream, Manner::kSynchronous);
}

CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void* src, size_t count, CUstream stream) {
    return transfer(linear(array_end(dst, offset), host_end(src), count), stream, Manner::kSynchronous);
}

CUresult cuMemcpyAtoH_v2(void* dst, CUarray src, size_t offset, size_t count, CUstream stream) {
    return transfer(linear(host_end(dst), array_end(src, offset), count), stream, Manner::kSynchronous);
}

CUresult cuMemcpyAtoA_v2(CUarray dst, size_t to, CUarray src, size_t from, size_t count, CUstream stream) {
    return transfer(linear(array_end(dst, to), array_end(src, from), count), stream, Manner::kSynchronous);
}

// Every context of this process is the same one, so a peer copy is an ordinary copy.
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t count, CUstream stream) {
    return transfer(linear(unified_end(dst), unified_end(src), count), stream, Manner::kSynchronous);
}

// Asynchronous.

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream) {
    return transfer(linear(unified_end(dst), unified_end(src), count), stream, Manner::kAsynchronous);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t count, CUstream stream) {
    return transfer(linear(device_end(dst), host_end(src), count), stream, Manner::kAsynchronous);
}

CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t count, CUstream stream) {
    return transfer(linear(host_end(dst), device_end(src), count), stream, Manner::kAsynchronous);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream) {
    return transfer(linear(device_end(dst), device_end(src), count), stream, Manner::kAsynchronous);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void* src, size_t count, CUstream stream) {
    return transfer(linear(array_end(dst, offset), host_end(src), count), stream, Manner::kAsynchronous);
}

CUresult cuMemcpyAtoHAsync_v2(void* dst, CUarray src, size_t offset, size_t count, CUstream stream) {
    return transfer(linear(host_end(dst), array_end(src, offset), count), stream, Manner::kAsynchronous);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t count,
                           CUstream stream) {
    return transfer(linear(unified_end(dst), unified_end(src), count), stream, Manner::kAsynchronous);
}

}  // namespace smt::interpose::driver
