// What the GPU writes about streams, in pinned memory: one slot per stream, which the stream takes and gives
// back.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/control_block.h"
#include "runtime/dispatch/door_control.h"

namespace smt::runtime::dispatch {

struct StreamWords {
    static constexpr size_t kGrowths = 4;      // streams for further workers of a launch
    std::atomic<uint64_t> reached;             // the stream's last marker
    std::atomic<uint64_t> grown[kGrowths];     // likewise of the growth streams
    std::atomic<uint64_t> sampled;             // number of the last answer in `sample`
    std::atomic<uint64_t> frontier_sampled;    // likewise in `frontier`
    std::atomic<uint64_t> waits_over;          // number of the last wait for a value that is over
    ControlBlock::State left;                  // ticket state when the stream reached its end
    ControlBlock::State left_grown[kGrowths];  // likewise for each growth stream
    ControlBlock::State sample;                // ticket state while workers run
    uint32_t frontier;                         // of a run with doors that is under way
    alignas(128) Frontiers frontiers;          // of runs with doors, when the stream reached its end
};
static_assert(sizeof(StreamWords) == 768);

// Any thread. Memory is registered once, at the first take().
class StreamWordsPool {
public:
    explicit StreamWordsPool(const DriverApi& driver) : driver_(driver) {}
    ~StreamWordsPool();  // precondition: no stream is left
    StreamWordsPool(const StreamWordsPool&) = delete;
    StreamWordsPool& operator=(const StreamWordsPool&) = delete;

    bool take(StreamWords** words, CUdeviceptr* address);  // false: no slot is left, or no memory
    void give(StreamWords* words);

private:
    bool open();

    const DriverApi& driver_;
    std::mutex mutex_;
    char* words_ = nullptr;
    CUdeviceptr address_ = 0;
    std::vector<uint32_t> free_;
};

}  // namespace smt::runtime::dispatch
