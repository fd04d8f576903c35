// Kernel launches and what is asked about them.
#include "runtime/device/hosted/backend.h"

using namespace smt::runtime::device::hosted;

namespace {

CUresult launch(const char* name, CUstream stream, Launch what, void** parameters, void** extra) {
    if (CUresult status = pack(what.function, parameters, extra, &what.parameters); status != CUDA_SUCCESS)
        return status;
    const Function* function = find_function(what.function);
    if (CUresult failed =
            asked(name, "%s grid=%u,%u,%u block=%u,%u,%u shared=%u", function->name.c_str(), what.grid[0],
                  what.grid[1], what.grid[2], what.block[0], what.block[1], what.block[2], what.shared_bytes);
        failed != CUDA_SUCCESS) {
        return failed;
    }
    for (int i = 0; i < 3; ++i) {
        if (what.grid[i] == 0 || what.block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    {
        Lock lock(world());
        if (auto target = find_stream(stream)) what.places = target->places;
    }
    if (CUresult status = backend().check(what); status != CUDA_SUCCESS) return status;
    auto node = std::make_unique<Node>();
    node->type = CU_GRAPH_NODE_TYPE_KERNEL;
    node->launch = std::move(what);
    return enqueue(stream, std::move(node));
}

}  // namespace

DRIVER_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                      unsigned block_x, unsigned block_y, unsigned block_z,
                                      unsigned shared_bytes, CUstream stream, void** parameters,
                                      void** extra) {
    Launch what{function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
    return launch("cuLaunchKernel", stream, std::move(what), parameters, extra);
}
DRIVER_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                        void** extra) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    Launch what{function,
                {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        if (CUresult status = backend().launch_attribute(config->attrs[i], &what); status != CUDA_SUCCESS)
            return status;
    }
    return launch("cuLaunchKernelEx", config->hStream, std::move(what), parameters, extra);
}
DRIVER_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                                 unsigned block_z, unsigned shared_bytes, CUstream stream,
                                                 void** parameters) {
    Launch what{function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
    what.cooperative = true;
    return launch("cuLaunchCooperativeKernel", stream, std::move(what), parameters, nullptr);
}

DRIVER_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                                            int block_size,
                                                                            size_t shared_bytes, unsigned) {
    if (!blocks) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult status = backend().prepare(*function); status != CUDA_SUCCESS) return status;
    *blocks = backend().resident_blocks(*function, block_size, shared_bytes);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                                   int block_size, size_t shared_bytes) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes,
                                                                0);
}
DRIVER_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                                               int block_size) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuOccupancyAvailableDynamicSMemPerBlock);
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (blocks <= 0 || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult status = backend().prepare(*function); status != CUDA_SUCCESS) return status;
    *bytes = backend().dynamic_shared(*function, block_size, blocks);
    return CUDA_SUCCESS;
}
