// What the programs of this folder share: checks, and registration as nvcc generates it.
//
// They are compiled by the C++ compiler, not by nvcc, and linked with our libcudart.so.13 (older.cpp: with
// an older one). Their images are texts that only the fake driver understands (tests/fakes/), behind the
// wrapper of a fatbin.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#define CHECK(call) cudart_test::check(call, #call, __LINE__)
#define FAILS(call, error) cudart_test::fails(call, error, #call, __LINE__)
#define REQUIRE(condition) cudart_test::require(condition, #condition, __LINE__)

extern "C" {
void** __cudaRegisterFatBinary(void* fatbin);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name, int limit,
                            uint3* tid, uint3* bid, dim3* block, dim3* grid, int* warp);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext, size_t bytes,
                       int constant, int global);
void __cudaRegisterManagedVar(void** handle, void** pointer, char* device, const char* name, int ext,
                              size_t bytes, int constant, int global);
char __cudaInitModule(void** handle);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared, cudaStream_t stream);
}

namespace cudart_test {

inline void check(cudaError_t status, const char* call, int line) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s returns %s (%d)\n", line, call, cudaGetErrorName(status), status);
    std::exit(1);
}

// Also clears the thread's last error, which must be the same.
inline void fails(cudaError_t status, cudaError_t wanted, const char* call, int line) {
    cudaError_t last = cudaGetLastError();
    if (status == wanted && last == wanted && cudaPeekAtLastError() == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s returns %s, last error %s, not %s\n", line, call,
                 cudaGetErrorName(status), cudaGetErrorName(last), cudaGetErrorName(wanted));
    std::exit(1);
}

inline void require(bool condition, const char* text, int line) {
    if (condition) return;
    std::fprintf(stderr, "line %d: not true: %s\n", line, text);
    std::exit(1);
}

// An image as a program's constructors register it.
class Image {
public:
    explicit Image(const char* text) : wrapper_{0x466243b1, 1, text, nullptr} {
        handle_ = __cudaRegisterFatBinary(&wrapper_);
    }
    // Of nvcc -rdc=true: what was linked, and its parts with a null behind them.
    Image(const char* text, const void* const* parts) : wrapper_{0x466243b1, 2, text, parts} {
        handle_ = __cudaRegisterFatBinary(&wrapper_);
    }
    template <typename... Parameters>
    Image& kernel(void (*host)(Parameters...), const char* name) {
        __cudaRegisterFunction(handle_, reinterpret_cast<const char*>(host), nullptr, name, -1, nullptr,
                               nullptr, nullptr, nullptr, nullptr);
        return *this;
    }
    template <typename T>
    Image& variable(T& host, const char* name) {
        __cudaRegisterVar(handle_, reinterpret_cast<char*>(&host), nullptr, name, 0, sizeof host, 0, 0);
        return *this;
    }
    void** end() {
        __cudaRegisterFatBinaryEnd(handle_);
        return handle_;
    }
    void** handle() { return handle_; }

private:
    struct {
        unsigned magic, version;
        const void* data;
        const void* more;
    } wrapper_;
    void** handle_;
};

// kernel<<<grid, block, shared, stream>>>(arguments...), as nvcc's stub does it.
template <typename... Parameters>
cudaError_t launch(void (*host)(Parameters...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                   std::type_identity_t<Parameters>... arguments) {
    if (__cudaPushCallConfiguration(grid, block, shared, stream) != 0) return cudaErrorUnknown;
    void* pointers[] = {&arguments..., nullptr};
    cudaKernel_t kernel = nullptr;
    __cudaGetKernel(&kernel, reinterpret_cast<const void*>(host));
    cudaError_t popped = __cudaPopCallConfiguration(&grid, &block, &shared, &stream);
    return popped ? popped : __cudaLaunchKernel(kernel, grid, block, pointers, shared, stream);
}

}  // namespace cudart_test
