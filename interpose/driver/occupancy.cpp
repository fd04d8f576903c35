// The block size of the highest occupancy: the algorithm that the CUDA runtime publishes in cuda_runtime.h.
// It runs in the client because it calls the application back for the shared memory of a block size. Block
// counts come from the server, one query for each size tried, which are remembered (transport/answers.h).
#include <cuda.h>

#include "driver.gen.h"
#include "interpose/driver/objects.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

namespace {

struct Limits {
    int threads_per_sm;
    int threads_per_block;
    int warp;
    int sms;
};

CUresult read_limits(Limits& limits) {
    CUdevice device = 0;
    SMT_TRY(driver::cuCtxGetDevice(&device));
    const struct {
        int* to;
        CUdevice_attribute attribute;
    } wanted[] = {{&limits.threads_per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
                  {&limits.threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
                  {&limits.warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
                  {&limits.sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT}};
    for (const auto& one : wanted) SMT_TRY(driver::cuDeviceGetAttribute(one.to, one.attribute, device));
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
    if (!minGridSize || !blockSize || blockSizeLimit < 0) return CUDA_ERROR_INVALID_VALUE;
    Function* function = find_function(func);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    Limits limits;
    SMT_TRY(read_limits(limits));

    int largest =
        function->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK].load(std::memory_order_relaxed);
    if (largest > limits.threads_per_block) largest = limits.threads_per_block;
    if (blockSizeLimit && blockSizeLimit < largest) largest = blockSizeLimit;

    int best_threads = 0, best_block = 0, best_blocks = 0;
    int first = (largest + limits.warp - 1) / limits.warp * limits.warp;
    for (int aligned = first; aligned > 0 && best_threads < limits.threads_per_sm; aligned -= limits.warp) {
        int block = aligned < largest ? aligned : largest;
        size_t shared_bytes =
            blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(block) : dynamicSMemSize;
        int blocks = 0;
        SMT_TRY(driver::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, func, block,
                                                                             shared_bytes, flags));
        if (block * blocks > best_threads) {
            best_threads = block * blocks;
            best_block = block;
            best_blocks = blocks;
        }
    }
    *minGridSize = best_blocks * limits.sms;
    *blockSize = best_block;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
    return driver::cuOccupancyMaxPotentialBlockSizeWithFlags(
        minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

}  // namespace smt::interpose::driver
