// The block size of the highest occupancy: the algorithm that the CUDA runtime publishes in cuda_runtime.h.
// It runs in the client because it calls the application back for the shared memory of a block size. Block
// counts come from the server, one query for each size tried, and are cached, since libraries repeat the same
// queries.
#include <cuda.h>

#include <atomic>

#include "driver.gen.h"
#include "interpose/driver/objects.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

namespace {

// A direct-mapped cache of results. An entry is written under its sequence number, which is odd during the
// write. A reader that finds it odd or changed queries the server.
struct Answer {
    std::atomic<uint32_t> sequence;
    std::atomic<uint32_t> function;  // the server's id + 1; 0: empty
    std::atomic<uint32_t> block;
    std::atomic<uint32_t> flags;
    std::atomic<uint64_t> shared_bytes;
    std::atomic<uint64_t> state;  // settings_of() the function, and the result
};
constexpr uint32_t kAnswers = 1024;
constinit Answer answers[kAnswers] = {};

// The inputs of the result beyond the query: settings that a program can change, and identifying facts of the
// kernel, because the server may reuse an id after an unload.
uint32_t settings_of(const Function& function) {
    uint32_t settings = function.name_hash;
    for (CUfunction_attribute attribute :
         {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_NUM_REGS,
          CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
          CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT})
        settings = settings * 31 +
                   static_cast<uint32_t>(function.attributes[attribute].load(std::memory_order_relaxed));
    return settings;
}

Answer& slot_of(uint32_t function, uint32_t block, uint64_t shared_bytes, uint32_t flags) {
    uint64_t key = (uint64_t(function) << 32 | block) * 0x9e3779b97f4a7c15ull ^
                   (shared_bytes * 31 + flags) * 0xbf58476d1ce4e5b9ull;
    return answers[(key >> 40) % kAnswers];
}

bool remembered(const Function& function, uint32_t block, uint64_t shared_bytes, uint32_t flags,
                int& blocks) {
    Answer& answer = slot_of(function.id, block, shared_bytes, flags);
    uint32_t sequence = answer.sequence.load(std::memory_order_acquire);
    if (sequence & 1) return false;
    bool same = answer.function.load(std::memory_order_relaxed) == function.id + 1 &&
                answer.block.load(std::memory_order_relaxed) == block &&
                answer.flags.load(std::memory_order_relaxed) == flags &&
                answer.shared_bytes.load(std::memory_order_relaxed) == shared_bytes;
    uint64_t state = answer.state.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (!same || state >> 32 != settings_of(function)) return false;
    blocks = static_cast<int>(state);
    return answer.sequence.load(std::memory_order_relaxed) == sequence;
}

void remember(const Function& function, uint32_t block, uint64_t shared_bytes, uint32_t flags, int blocks) {
    Answer& answer = slot_of(function.id, block, shared_bytes, flags);
    uint32_t sequence = answer.sequence.load(std::memory_order_relaxed);
    if (sequence & 1 ||
        !answer.sequence.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire))
        return;
    std::atomic_thread_fence(std::memory_order_release);
    answer.function.store(function.id + 1, std::memory_order_relaxed);
    answer.block.store(block, std::memory_order_relaxed);
    answer.flags.store(flags, std::memory_order_relaxed);
    answer.shared_bytes.store(shared_bytes, std::memory_order_relaxed);
    answer.state.store(uint64_t(settings_of(function)) << 32 | static_cast<uint32_t>(blocks),
                       std::memory_order_relaxed);
    answer.sequence.store(sequence + 2, std::memory_order_release);
}

CUresult active_blocks(const Function& function, int block, size_t shared_bytes, unsigned int flags,
                       int& blocks) {
    if (remembered(function, block, shared_bytes, flags, blocks)) return CUDA_SUCCESS;
    CUfunction handle = reinterpret_cast<CUfunction>(const_cast<Function*>(&function));
    CUresult status = driver::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, handle, block,
                                                                                   shared_bytes, flags);
    if (status == CUDA_SUCCESS) remember(function, block, shared_bytes, flags, blocks);
    return status;
}

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
        SMT_TRY(active_blocks(*function, block, shared_bytes, flags, blocks));
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
