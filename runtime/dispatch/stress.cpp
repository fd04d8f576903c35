#include "runtime/dispatch/stress.h"

namespace smt::runtime::dispatch {

namespace {

constexpr uint64_t kLongestPause = 300;   // us between two things that are done to a run
constexpr uint64_t kLongRun = 2'000;

}  // namespace

// Nothing anywhere would never end, so one multiprocessor always has a place.
QuotaTable Stress::quotas(int most) {
    QuotaTable table(static_cast<size_t>(multiprocessors_));
    if (one_in(4)) {   // some multiprocessors, all places
        for (uint8_t& each : table) each = one_in(2) ? smt::kNoQuota : 0;
    } else {
        for (uint8_t& each : table) each = static_cast<uint8_t>(below(static_cast<uint64_t>(most) + 1));
    }
    uint8_t& lucky = table[places_[below(places_.size())]];
    if (lucky == 0) lucky = 1;
    return table;
}

void Stress::plan() {
    next_ = schedule::Clock::now() + std::chrono::microseconds(below(one_in(8) ? kLongRun : kLongestPause));
}

void Stress::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    using Seen = schedule::Kernel::State;
    const int most = kernel.ctas_per_sm > 0 ? kernel.ctas_per_sm : 8;
    if (!kernel.managed) {
        if (kernel.state == Seen::kWaiting) stream.flow();   // whole kernels: there is nothing to do to them
    } else if (kernel.state == Seen::kWaiting) {
        ++schedules_;
        plan();
        const uint64_t left = kernel.blocks - kernel.blocks_done;
        if (one_in(4)) {
            stream.flow();
        } else {
            stream.run(quotas(most), one_in(3) ? 1 + below(left) : 0);
        }
    } else if (kernel.state == Seen::kRunning && schedule::Clock::now() >= next_) {
        plan();
        switch (below(4)) {
            case 0:
                if (stream.flowing()) {
                    stream.stop();
                } else {
                    stream.halt();
                }
                break;
            case 1:
                stream.change(quotas(most));
                break;
            case 2:
                stream.grow(1 + static_cast<uint32_t>(below(static_cast<uint64_t>(multiprocessors_))));
                break;
            default:
                break;
        }
    }
}

}  // namespace smt::runtime::dispatch
