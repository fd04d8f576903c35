// Samples of how far the launches of a stream are while they run: tickets, so that a policy sees their
// progress, and the frontier of a launch with doors, for the watch of endless kernels. Not thread-safe:
// guarded by its stream's lock.
//
// The GPU writes a sample, and behind it the sample's number. The next one is asked for when the last one is
// there.
#pragma once

#include <chrono>

#include "runtime/dispatch/control_block.h"
#include "runtime/dispatch/door_form.h"
#include "runtime/dispatch/markers.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class ProgressSamples {
public:
    explicit ProgressSamples(Markers& markers) : markers_(markers) {}

    // Takes the last answer, and asks again from time to time. `runs`: workers run. `errands`: a stream other
    // than the control stream, where a sample would delay a stop.
    void look(ControlBlock& control, CUstream errands, bool runs, schedule::TimePoint now) {
        StreamWords& words = markers_.words();
        if (words.sampled.load(std::memory_order_acquire) < asked_) return;
        if (fresh_ && asked_ > 0) last_ = words.sample;
        if (!runs || now < again_) return;
        again_ = now + kBetween;
        if (control.report(errands, &words.sample) != CUDA_SUCCESS) return;
        if (markers_.write(errands, &words.sampled, asked_ + 1) != CUDA_SUCCESS) return;
        ++asked_;
        fresh_ = true;
    }
    uint32_t taken() const { return last_.taken; }  // tickets, at the last look
    void forget() {                                 // tickets are counted from 0 again
        last_ = {};
        fresh_ = false;
    }

    // The same of the frontier of `work`. Without an answer it stays what it was.
    void look(DoorForm& door, const Work& work, CUstream errands) {
        StreamWords& words = markers_.words();
        if (words.frontier_sampled.load(std::memory_order_acquire) < frontiers_asked_) return;
        if (frontiers_asked_ > 0) frontier_ = words.frontier;
        if (door.sample(work) != CUDA_SUCCESS) return;
        if (markers_.write(errands, &words.frontier_sampled, frontiers_asked_ + 1) == CUDA_SUCCESS)
            ++frontiers_asked_;
    }
    uint32_t frontier() const { return frontier_; }

private:
    // Each sample is a copy of a few bytes and costs the dispatcher a few microseconds.
    static constexpr auto kBetween = std::chrono::microseconds(100);

    Markers& markers_;
    ControlBlock::State last_;
    uint64_t asked_ = 0;
    bool fresh_ = false;  // asked since tickets were last counted from 0
    schedule::TimePoint again_{};
    uint64_t frontiers_asked_ = 0;
    uint32_t frontier_ = 0;
};

}  // namespace smt::runtime::dispatch
