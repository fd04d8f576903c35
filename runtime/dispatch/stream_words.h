// What the GPU tells about streams, in pinned memory: a line for each, which its stream takes and gives back.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/control_block.h"

namespace smt::runtime::dispatch {

struct StreamWords {
    static constexpr size_t kGrowths = 4;      // streams for a launch's further workers
    std::atomic<uint64_t> reached;             // the stream's last marker
    std::atomic<uint64_t> grown[kGrowths];     // the growth streams'
    std::atomic<uint64_t> sampled;             // the last answer in `sample`
    ControlBlock::State left;                  // how far the tickets were when the stream got to its end, and
    ControlBlock::State left_grown[kGrowths];  // when each of the growth streams did
    ControlBlock::State sample;                // while they run
};
static_assert(sizeof(StreamWords) <= 128);

// Any thread. Memory is registered at the first take, once.
class StreamWordsPool {
public:
    explicit StreamWordsPool(const DriverApi& driver) : driver_(driver) {}
    ~StreamWordsPool();   // no stream is left
    StreamWordsPool(const StreamWordsPool&) = delete;
    StreamWordsPool& operator=(const StreamWordsPool&) = delete;

    bool take(StreamWords** words, CUdeviceptr* address);   // false: there are no more, or no memory
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
