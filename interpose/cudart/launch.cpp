#include "interpose/cudart/launch.h"

#include "cudart_written.gen.h"
#include "interpose/cudart/convert.h"

namespace smt::cudart {

namespace {

bool within(dim3 shape, const CUdevice_attribute (&limits)[3], CUdevice device) {
    const unsigned sizes[3] = {shape.x, shape.y, shape.z};
    for (int i = 0; i < 3; ++i) {
        int most = 0;
        if (sizes[i] == 0) return false;
        if (driver().cuDeviceGetAttribute(&most, limits[i], device) == CUDA_SUCCESS && sizes[i] > unsigned(most))
            return false;
    }
    return true;
}

bool is_possible(dim3 grid, dim3 block) {
    constexpr CUdevice_attribute kGrid[3] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                             CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
    constexpr CUdevice_attribute kBlock[3] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                              CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
    int device = 0, most = 0;
    current_device(&device);
    if (!within(grid, kGrid, device) || !within(block, kBlock, device)) return false;
    return driver().cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device) != CUDA_SUCCESS ||
           uint64_t{block.x} * block.y * block.z <= unsigned(most);
}

}  // namespace

cudaError_t from_launch(CUresult status, dim3 grid, dim3 block) {
    if (status == CUDA_ERROR_INVALID_VALUE && !is_possible(grid, block)) return cudaErrorInvalidConfiguration;
    return from_driver(status);
}

cudaError_t launch(const Kernel& kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                   CUstream stream) {
    if (shared_bytes > UINT32_MAX) return cudaErrorInvalidValue;
    CUresult status = driver().cuLaunchKernel(kernel.function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                              unsigned(shared_bytes), stream, arguments, nullptr);
    return from_launch(status, grid, block);
}

cudaError_t driver_config(const cudaLaunchConfig_t& config, CUstream default_stream, CUlaunchConfig& made) {
    if (config.dynamicSmemBytes > UINT32_MAX) return cudaErrorInvalidValue;
    made = {};
    made.gridDimX = config.gridDim.x;
    made.gridDimY = config.gridDim.y;
    made.gridDimZ = config.gridDim.z;
    made.blockDimX = config.blockDim.x;
    made.blockDimY = config.blockDim.y;
    made.blockDimZ = config.blockDim.z;
    made.sharedMemBytes = unsigned(config.dynamicSmemBytes);
    made.hStream = or_default(config.stream, default_stream);
    made.attrs = as_driver(config.attrs);
    made.numAttrs = config.numAttrs;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const Kernel& kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
    return launch(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const Kernel& kernel, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
    if (shared_bytes > UINT32_MAX) return cudaErrorInvalidValue;
    CUresult status = driver().cuLaunchCooperativeKernel(kernel.function, grid.x, grid.y, grid.z, block.x, block.y,
                                                         block.z, unsigned(shared_bytes), stream, arguments);
    return from_launch(status, grid, block);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const Kernel& kernel, void** arguments,
                                CUstream default_stream) {
    if (!config) return cudaErrorInvalidValue;
    CUlaunchConfig made;
    if (cudaError_t failed = driver_config(*config, default_stream, made)) return failed;
    CUresult status = driver().cuLaunchKernelEx(&made, kernel.function, arguments, nullptr);
    return from_launch(status, config->gridDim, config->blockDim);
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const Kernel& kernel, const cudaLaunchConfig_t* config) {
    if (!config) return cudaErrorInvalidValue;
    CUlaunchConfig made;
    if (cudaError_t failed = driver_config(*config, CU_STREAM_LEGACY, made)) return failed;
    return from_driver(driver().cuOccupancyMaxActiveClusters(clusters, kernel.function, &made));
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const Kernel& kernel, const cudaLaunchConfig_t* config) {
    if (!config) return cudaErrorInvalidValue;
    CUlaunchConfig made;
    if (cudaError_t failed = driver_config(*config, CU_STREAM_LEGACY, made)) return failed;
    return from_driver(driver().cuOccupancyMaxPotentialClusterSize(size, kernel.function, &made));
}

}  // namespace smt::cudart
