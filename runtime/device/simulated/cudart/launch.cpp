#include "runtime/device/simulated/cudart/launch.h"

#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/convert.h"

namespace smt::cudart {

cudaError_t launch(const RegisteredKernel& kernel, dim3 grid, dim3 block, void** arguments,
                   size_t shared_bytes, CUstream stream) {
    if (shared_bytes > UINT32_MAX) return cudaErrorInvalidValue;
    CUresult status = driver().cuLaunchKernel(kernel.function, grid.x, grid.y, grid.z, block.x, block.y,
                                              block.z, unsigned(shared_bytes), stream, arguments, nullptr);
    return from_driver(status);
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

cudaError_t cudaLaunchKernel(const RegisteredKernel& kernel, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
    return launch(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const RegisteredKernel& kernel, dim3 grid, dim3 block,
                                        void** arguments, size_t shared_bytes, cudaStream_t stream) {
    if (shared_bytes > UINT32_MAX) return cudaErrorInvalidValue;
    CUresult status =
        driver().cuLaunchCooperativeKernel(kernel.function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                           unsigned(shared_bytes), stream, arguments);
    return from_driver(status);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const RegisteredKernel& kernel,
                                void** arguments, CUstream default_stream) {
    if (!config) return cudaErrorInvalidValue;
    CUlaunchConfig made;
    if (cudaError_t failed = driver_config(*config, default_stream, made)) return failed;
    CUresult status = driver().cuLaunchKernelEx(&made, kernel.function, arguments, nullptr);
    return from_driver(status);
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const RegisteredKernel& kernel,
                                           const cudaLaunchConfig_t* config) {
    if (!config) return cudaErrorInvalidValue;
    CUlaunchConfig made;
    if (cudaError_t failed = driver_config(*config, CU_STREAM_LEGACY, made)) return failed;
    return from_driver(driver().cuOccupancyMaxActiveClusters(clusters, kernel.function, &made));
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const RegisteredKernel& kernel,
                                                 const cudaLaunchConfig_t* config) {
    if (!config) return cudaErrorInvalidValue;
    CUlaunchConfig made;
    if (cudaError_t failed = driver_config(*config, CU_STREAM_LEGACY, made)) return failed;
    return from_driver(driver().cuOccupancyMaxPotentialClusterSize(size, kernel.function, &made));
}

}  // namespace smt::cudart
