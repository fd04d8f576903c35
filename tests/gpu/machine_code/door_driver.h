// The driver, as door_check.cpp uses it: every call that fails ends the program, or is a result.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

inline const char* error_text(CUresult status) {
    const char* text = nullptr;
    cuGetErrorName(status, &text);
    return text ? text : "an unknown error";
}

inline void must(CUresult status, const char* call, int line) {
    if (status == CUDA_SUCCESS) return;
    std::fprintf(stderr, "line %d: %s: %s\n", line, call, error_text(status));
    std::fflush(nullptr);
    std::_Exit(3);  // the context may be lost
}
#define MUST(call) must(call, #call, __LINE__)

class Buffer {
public:
    explicit Buffer(size_t bytes) : bytes_(bytes) { MUST(cuMemAlloc(&address_, bytes ? bytes : 1)); }
    Buffer(const Buffer&) = delete;
    ~Buffer() { cuMemFree(address_); }
    CUdeviceptr address() const { return address_; }
    size_t bytes() const { return bytes_; }

private:
    CUdeviceptr address_ = 0;
    size_t bytes_;
};

struct Launch {
    unsigned grid[3] = {1, 1, 1}, block[3] = {128, 1, 1};
    unsigned shared = 0, cluster = 0;  // bytes; CTAs in x, 0: the kernel's own
    size_t ctas() const { return size_t{grid[0]} * grid[1] * grid[2]; }
    size_t threads() const { return ctas() * block[0] * block[1] * block[2]; }
};

inline CUresult launch(CUfunction function, const Launch& shape, CUstream stream, void** parameters) {
    CUlaunchConfig config{};
    config.gridDimX = shape.grid[0], config.gridDimY = shape.grid[1], config.gridDimZ = shape.grid[2];
    config.blockDimX = shape.block[0], config.blockDimY = shape.block[1], config.blockDimZ = shape.block[2];
    config.sharedMemBytes = shape.shared;
    config.hStream = stream;
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = shape.cluster;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = shape.cluster ? 1 : 0;
    return cuLaunchKernelEx(&config, function, parameters, nullptr);
}
