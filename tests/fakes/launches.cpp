// Kernel launches and what is asked about them.
#include "fake.h"

using namespace fake;

namespace {

// The shapes that cuDeviceGetAttribute promises.
bool fits(const unsigned (&grid)[3], const unsigned (&block)[3]) {
    for (int i = 0; i < 3; ++i) {
        if (grid[i] == 0 || block[i] == 0) return false;
    }
    return grid[0] <= 2147483647u && grid[1] <= 65535 && grid[2] <= 65535 && block[2] <= 64 &&
           uint64_t{block[0]} * block[1] * block[2] <= 1024;
}

CUresult launch(const char* name, CUstream stream, Launch what, void** parameters, void** extra) {
    if (CUresult status = pack(what.function, parameters, extra, &what.parameters); status != CUDA_SUCCESS) return status;
    if (CUresult failed = asked(name, "%s grid=%u,%u,%u block=%u,%u,%u shared=%u", name_of(what.function), what.grid[0],
                                what.grid[1], what.grid[2], what.block[0], what.block[1], what.block[2],
                                what.shared_bytes);
        failed != CUDA_SUCCESS) {
        return failed;
    }
    if (!fits(what.grid, what.block)) return CUDA_ERROR_INVALID_VALUE;
    auto node = std::make_unique<Node>();
    node->type = CU_GRAPH_NODE_TYPE_KERNEL;
    node->launch = std::move(what);
    node->work = [launch = node->launch] { run(launch); };
    return enqueue(stream, std::move(node));
}

}  // namespace

FAKE_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                    CUstream stream, void** parameters, void** extra) {
    Launch what{function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, {}};
    return launch("cuLaunchKernel", stream, std::move(what), parameters, extra);
}
FAKE_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                      void** extra) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    Launch what{function,
                {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes,
                {}};
    return launch("cuLaunchKernelEx", config->hStream, std::move(what), parameters, extra);
}
FAKE_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                               unsigned block_x, unsigned block_y, unsigned block_z,
                                               unsigned shared_bytes, CUstream stream, void** parameters) {
    Launch what{function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, {}};
    return launch("cuLaunchCooperativeKernel", stream, std::move(what), parameters, nullptr);
}

FAKE_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction, int block_size,
                                                                          size_t, unsigned) {
    if (!blocks) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = 2048 / block_size < 32 ? 2048 / block_size : 32;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                                 size_t shared_bytes) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0);
}
FAKE_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction, int blocks, int) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuOccupancyAvailableDynamicSMemPerBlock);
    if (blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
    *bytes = (227u << 10) / blocks;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig*) {
    if (!size) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuOccupancyMaxPotentialClusterSize);
    *size = 8;
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig* config) {
    if (!clusters || !config) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuOccupancyMaxActiveClusters, "attributes=%u", config->numAttrs);
    *clusters = 4;
    return CUDA_SUCCESS;
}
