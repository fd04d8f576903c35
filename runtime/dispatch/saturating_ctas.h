// Saturating CTA count: the fewest CTAs per SM with which a kernel gets as much done as with all that fit.
// Found by trial, while the kernel is preemptible and the policy asks for short stops. With fewer CTAs each
// block takes less time, which is what a stop waits for, and a new kernel finds room at once.
// (smcompactor.txt 3.4 looks for the same number, to give the remaining CTAs to other kernels.)
//
// Throughput is blocks in the time that an SM had any workers, as the workers report it. The first trial is
// with all CTAs that fit. Then a binary search runs between the largest count that is too small and the
// smallest that suffices. A kernel that needs all its CTAs is slow for one or two launches per trial, once.
//
// A launch in whose places others were when it began is ignored. Its trial is of fewer CTAs than it says:
// where another kernel has one of two places, one CTA would seem to do as much as two. If fewer CTAs do more
// than all that fit, the kernel was not alone in the first trial: counts are compared with the highest
// throughput seen.
//
// Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "rewriter/device/smt_worker.h"

namespace smt::runtime::dispatch {

class SaturatingCtas {
public:
    static constexpr double kAsMuch = 0.985;
    static constexpr uint64_t kBlocksEach = 4;     // per CTA, before a count is judged
    static constexpr uint64_t kBlocksStopped = 8;  // per worker of a stopped launch, or it is ignored
    // Launches in a row that were ignored: blocks are long, and any number counts.
    static constexpr int kMostShort = 32;
    // A launch is late if its CTAs begin later than this part of its duration, on average: others' doing.
    static constexpr double kMostLate = 0.15;
    // Launches in a row that were late: others are always there, and the search ends with what it has.
    static constexpr int kMostCrowded = 32;
    // Tolerance at most, for blocks that were a worker's last before a stop.
    static constexpr double kMostForLast = 0.015;

    struct Try {
        uint32_t ctas = 0;  // per SM, at most those that fit
        bool asks = false;  // the count is not known yet: report the launch to learn()
    };
    Try next(uint32_t fits);
    uint32_t found(uint32_t fits);  // 0: not known

    // What all workers of a launch did. `time_ns`: summed over SMs, each from its first worker's begin to its
    // last worker's end.
    struct Done {
        uint64_t workers = 0;
        uint64_t blocks = 0;
        uint64_t time_ns = 0;
        bool stopped = false;
        double late = 0;  // late_part()
    };
    // Reports a launch with `ctas` CTAs on each of `multiprocessors` SMs. True: the count is found.
    // Workers that were stopped after a few blocks are ignored. The last block of other stopped workers ran
    // beside fewer CTAs, so half of these blocks are tolerated, at most kMostForLast: more would accept one
    // CTA where two are needed (measured: md5_hash does 0.95 with one).
    bool learn(uint32_t fits, uint32_t ctas, uint32_t multiprocessors, const Done& done);
    void forget();

private:
    uint32_t tried() const { return best_ > 0 ? (too_few_ + enough_) / 2 : fits_; }
    bool known() const { return fits_ == 1 || (best_ > 0 && enough_ - too_few_ <= 1); }
    void begin(uint32_t fits);

    std::mutex mutex_;
    uint32_t fits_ = 0, too_few_ = 0, enough_ = 0;
    // Highest throughput so far, in blocks per ns of an SM; 0: not known.
    double best_ = 0;
    // Of the current trial; `last_`: blocks that were a worker's last before a stop.
    uint64_t blocks_ = 0, time_ns_ = 0, last_ = 0;
    int short_ = 0, crowded_ = 0;  // launches in a row that were ignored
};

// How much later than a launch its `count` CTAs begin, on average, as a part of its duration. One that is not
// among `workers` had not begun at the launch's end.
double late_part(const std::vector<smt::Mapping>& workers, uint64_t count);

// Time in which SMs had any of a launch's workers, summed over SMs. If the launch may use an SM that had
// none, that SM counts with the launch's duration: other kernels occupied it when the launch began, and its
// workers went to other SMs, more on each than intended.
uint64_t time_of_multiprocessors(const std::vector<smt::Mapping>& workers, uint32_t multiprocessors);

}  // namespace smt::runtime::dispatch
