// Samples of a control block while workers run, so that a policy sees the progress of launches. Not
// thread-safe: guarded by its stream's lock.
#pragma once

#include <chrono>

#include "runtime/dispatch/control_block.h"
#include "runtime/dispatch/markers.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class TicketSamples {
public:
    // Takes the last answer, and asks again from time to time. `runs`: workers run. `errands`: a stream other
    // than the control stream, where a sample would delay a stop.
    void look(ControlBlock& control, Markers& markers, CUstream errands, bool runs, schedule::TimePoint now) {
        StreamWords& words = markers.words();
        if (words.sampled.load(std::memory_order_acquire) < asked_) return;
        if (fresh_ && asked_ > 0) last_ = words.sample;
        if (!runs || now < again_) return;
        again_ = now + kBetween;
        if (control.report(errands, &words.sample) != CUDA_SUCCESS) return;
        if (markers.write(errands, &words.sampled, asked_ + 1) != CUDA_SUCCESS) return;
        ++asked_;
        fresh_ = true;
    }
    uint32_t taken() const { return last_.taken; }  // tickets, at the last look
    void forget() {                                 // tickets are counted from 0 again
        last_ = {};
        fresh_ = false;
    }

private:
    // Each sample is a copy of a few bytes and costs the dispatcher a few microseconds.
    static constexpr auto kBetween = std::chrono::microseconds(100);

    ControlBlock::State last_;
    uint64_t asked_ = 0;
    bool fresh_ = false;  // asked since tickets were last counted from 0
    schedule::TimePoint again_{};
};

}  // namespace smt::runtime::dispatch
