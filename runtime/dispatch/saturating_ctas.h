// The fewest CTAs on a multiprocessor with which a kernel gets as much done as with all that fit; found by trying, while
// somebody may want the kernel stopped, under a policy that says so. With fewer each block takes less time, and that is what a stop waits for; and a
// newcomer finds room at once. (smcompactor.txt 3.4 looks for the same number, to give the rest to others.)
//
// What is done is told by the workers: blocks in the time that a multiprocessor had any of them. First with all that fit, then in halves
// between the most that are too few and the fewest that are enough: a kernel that needs all its CTAs is slow for a
// launch or two for each of them, once. Who does more with fewer than with all was not alone when that was tried: it is compared with the most it did.
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
    static constexpr uint64_t kBlocksEach = 4;     // of each CTA's place, before a number is judged;
    static constexpr uint64_t kBlocksStopped = 8;  // of each worker, where they were stopped; but if that were too few so
    static constexpr int kMostShort = 32;          // often, one time after the other, blocks are long, and any will do
    static constexpr double kMostForLast = 0.015;  // so much less is as much besides, for blocks that were a worker's last

    struct Try {
        uint32_t ctas = 0;   // on a multiprocessor, at most those that fit
        bool asks = false;   // not known yet: learn() is to be told
    };
    Try next(uint32_t fits);
    uint32_t found(uint32_t fits);   // 0: not known

    // What all workers of a launch did: blocks, in so much time of multiprocessors, from the first worker there to the last; and whether they were stopped.
    struct Done {
        uint64_t workers = 0;
        uint64_t blocks = 0;
        uint64_t time_ns = 0;
        bool stopped = false;
    };
    // With so many CTAs on each of so many multiprocessors. True: now it is known. Workers that were stopped after a few blocks say nothing; of others the last block is
    // run beside fewer, which counts for half. More would let in one CTA where two are needed: md5_hash does 0.95 with one.
    bool learn(uint32_t fits, uint32_t ctas, uint32_t multiprocessors, const Done& done);
    void forget();

private:
    uint32_t tried() const { return best_ > 0 ? (too_few_ + enough_) / 2 : fits_; }
    bool known() const { return fits_ == 1 || (best_ > 0 && enough_ - too_few_ <= 1); }
    void begin(uint32_t fits);

    std::mutex mutex_;
    uint32_t fits_ = 0, too_few_ = 0, enough_ = 0;
    double best_ = 0;                        // blocks in a time, of a multiprocessor, with all that fit or as many as did more; 0: not known
    uint64_t blocks_ = 0, time_ns_ = 0, last_ = 0;   // of what is tried; blocks that were a worker's last before a stop
    int short_ = 0;                          // times, one after the other, that they were too few
};

// For how long multiprocessors had any of a launch's workers, summed over them. One without any counts as long as the launch did, if the launch may use
// it: where others were at work as it began its workers went elsewhere, more on each than they should be.
uint64_t time_of_multiprocessors(const std::vector<smt::Mapping>& workers, uint32_t multiprocessors);

}  // namespace smt::runtime::dispatch
