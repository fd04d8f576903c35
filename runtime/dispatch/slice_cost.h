// What a slice of a launch costs: its time beyond its part of the whole launch (Kernelet, 4.1), from what its
// workers wrote down.
//
// A launch in one piece has its workers at work from one block to the next. In slices it has, after each, the
// last blocks of some workers while others have left, the way of the news to the dispatcher, a decision, and
// a new launch. So what a slice takes from the end of the one before it to its own end, less the mean time
// that its workers were at work, is what slicing costs. All times are the GPU's, and company on the same
// multiprocessors slows workers down without adding to that.
//
//     slice before      ========|
//     this one, 2 places        .   ===========
//                               .   ========          from | on 15; at work 11 and 8: it costs 5.5
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace smt::runtime::dispatch {

class SliceCost {
public:
    // A kernel that begins later was held back meanwhile, or its program was not ready.
    static constexpr uint64_t kLongestGapNs = 1'000'000;
    // Samples of a kernel with a class of grids: a mean of so many is good, and after that workers need not
    // write.
    static constexpr int64_t kEnough = 32;

    // A slice that is over. Times in ns of the GPU's timer.
    struct Slice {
        uint64_t launch = 0;  // the same for all slices of a launch
        uint64_t began = 0, ended = 0;
        uint64_t at_work = 0;  // of all its workers
        uint64_t places = 0;   // workers at a time, at most
    };
    // ns that it cost; nothing: it does not follow another slice of its launch at once.
    std::optional<uint64_t> next(const Slice& slice) {
        const Slice before = std::exchange(last_, slice);
        if (before.launch != slice.launch || before.ended == 0 || slice.places == 0) return std::nullopt;
        if (slice.began < before.ended || slice.began - before.ended > kLongestGapNs) return std::nullopt;
        const uint64_t took = slice.ended - before.ended, worth = slice.at_work / slice.places;
        return took - std::min(took, worth);
    }

private:
    Slice last_;
};

}  // namespace smt::runtime::dispatch
