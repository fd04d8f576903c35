// Physical memory that is mapped nowhere and waits for its next use: the same size is given out again, the
// newest first. It is bounded in bytes, by a share of the device's memory, and in number, as a takeover frees
// each; what waits for long leaves.
//
//     add(A, 2 MiB)   add(B, 64 MiB)   take(2 MiB) = A   take(2 MiB): none   take_unused(later) = B
//
// No driver here: what leaves is the caller's to free. Not thread-safe.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

namespace smt::runtime::device {

struct MadeChunk {
    CUmemGenericAllocationHandle handle = 0;
    uint64_t id = 0;  // the keeper's; 0: the driver made it
};

class SpareChunks {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr uint64_t kShare = 32;
    static constexpr size_t kMost = 8;
    static constexpr auto kLongest = std::chrono::seconds(5);

    void bound(uint64_t device_bytes) { most_bytes_ = device_bytes / kShare; }  // 0 before: nothing is kept
    bool take(uint64_t bytes, MadeChunk* chunk);                                // false: none is of that size
    // Returns what leaves for it: the oldest ones, or the chunk itself if it is larger than the bound.
    std::vector<MadeChunk> add(const MadeChunk& chunk, uint64_t bytes, Clock::time_point now);
    std::vector<MadeChunk> take_unused(Clock::time_point now);  // those that have waited for kLongest
    std::vector<MadeChunk> take_all();
    uint64_t bytes() const { return bytes_; }

private:
    struct Spare {
        MadeChunk chunk;
        uint64_t bytes;
        Clock::time_point since;
    };
    MadeChunk take_oldest();

    std::deque<Spare> spare_;  // the oldest first
    uint64_t bytes_ = 0, most_bytes_ = 0;
};

}  // namespace smt::runtime::device
