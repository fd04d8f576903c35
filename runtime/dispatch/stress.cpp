#include "runtime/dispatch/stress.h"

namespace smt::runtime::dispatch {

namespace {

constexpr uint64_t kLongestPause = 300;   // us between two things that are done to a run
constexpr uint64_t kLongRun = 2'000;
constexpr uint64_t kShortRun = 60;        // where there is nothing but stops

int most_of(const schedule::Kernel& kernel) { return kernel.ctas_per_sm > 0 ? kernel.ctas_per_sm : 8; }

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
    const uint64_t longest = stops_only_ ? kShortRun : one_in(8) ? kLongRun : kLongestPause;
    next_ = schedule::Clock::now() + std::chrono::microseconds(below(longest));
}

void Stress::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    using Seen = schedule::Kernel::State;
    if (!kernel.managed) {
        if (kernel.state == Seen::kWaiting) stream.flow();   // whole kernels: there is nothing to do to them
    } else if (kernel.state == Seen::kWaiting) {
        ++schedules_;
        stops_ += kernel.blocks_done != 0;
        plan();
        begin(stream, kernel);
    } else if (kernel.state == Seen::kRunning && schedule::Clock::now() >= next_) {
        plan();
        disturb(stream, kernel);
    }
}

void Stress::begin(ManagedStream& stream, const schedule::Kernel& kernel) {
    if (one_in(4)) {
        stream.flow();
    } else if (stops_only_) {
        stream.run(QuotaTable(static_cast<size_t>(multiprocessors_), smt::kNoQuota), 0);
    } else {
        stream.run(quotas(most_of(kernel)), one_in(3) ? 1 + below(kernel.blocks - kernel.blocks_done) : 0);
    }
}

void Stress::disturb(ManagedStream& stream, const schedule::Kernel& kernel) {
    switch (stops_only_ ? 0 : below(4)) {
        case 0:
            if (stream.flowing()) {
                stream.stop();
            } else {
                stream.halt();
            }
            break;
        case 1:
            stream.change(quotas(most_of(kernel)));
            break;
        case 2:
            stream.grow(1 + static_cast<uint32_t>(below(static_cast<uint64_t>(multiprocessors_))));
            break;
        default:
            break;
    }
}

}  // namespace smt::runtime::dispatch
