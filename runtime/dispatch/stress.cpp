#include "runtime/dispatch/stress.h"

#include <fmt/format.h>

#include <algorithm>

namespace smt::runtime::dispatch {

namespace {

constexpr uint64_t kLongestPause = 300;  // us between two disturbances of a run
constexpr uint64_t kLongRun = 2'000;
constexpr uint64_t kShortRun = 60;  // if there are only stops
// With few workers: at least so many stops are left for a launch.
constexpr uint64_t kStopsLeft = 8;
constexpr uint64_t kMostDoublings = 10;  // 60 ms at the least

int most_of(const schedule::Kernel& kernel) { return kernel.ctas_per_sm > 0 ? kernel.ctas_per_sm : 8; }

}  // namespace

// A table without any place would never end, so one SM always has one.
QuotaTable Stress::quotas(int most) {
    QuotaTable table(static_cast<size_t>(multiprocessors_));
    if (one_in(4)) {  // some SMs, with all places
        for (uint8_t& each : table) each = one_in(2) ? smt::kNoQuota : 0;
    } else {
        for (uint8_t& each : table) each = static_cast<uint8_t>(below(static_cast<uint64_t>(most) + 1));
    }
    uint8_t& lucky = table[places_[below(places_.size())]];
    if (lucky == 0) lucky = 1;
    return table;
}

// Room for so many workers, or a few more, on as many SMs as that takes, from a random one on.
QuotaTable Stress::few(uint64_t workers, int most) {
    QuotaTable table(static_cast<size_t>(multiprocessors_));
    const uint64_t each = 1 + below(std::min(workers, static_cast<uint64_t>(most)));
    const uint64_t wanted = std::min<uint64_t>((workers + each - 1) / each, places_.size()),
                   first = below(places_.size());
    for (uint64_t i = 0; i < wanted; ++i)
        table[places_[(first + i) % places_.size()]] = static_cast<uint8_t>(each);
    return table;
}

void Stress::plan(const ManagedStream& stream) {
    const uint64_t longest = kind_ == Kind::kStops                 ? kShortRun
                             : kind_ == Kind::kQuotas || one_in(8) ? kLongRun
                                                                   : kLongestPause;
    next_ = stream.now() + std::chrono::microseconds(below(longest << std::min(fruitless_, kMostDoublings)));
}

std::string Stress::summary() const {
    return fmt::format("under stress: {} schedules, {} launches stopped half way", schedules_, stops_);
}
// A stop left a launch half done if blocks of it have run since the last stop, and others have not.
void Stress::count(const schedule::Kernel& kernel) {
    ++schedules_;
    const bool same = std::exchange(launch_, kernel.launch) == kernel.launch;
    const uint64_t before = same ? done_ : 0;
    done_ = kernel.blocks_done;
    fruitless_ = same && done_ == before ? fruitless_ + 1 : 0;
    stops_ += std::exchange(told_, false) && done_ > before;
}

void Stress::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    using Seen = schedule::Kernel::State;
    if (!kernel.stoppable()) {
        if (kernel.state == Seen::kWaiting) stream.pass_through();  // whole kernels cannot be disturbed
    } else if (kernel.state == Seen::kWaiting) {
        count(kernel);
        plan(stream);
        begin(stream, kernel);
    } else if (kernel.state == Seen::kRunning && stream.now() >= next_) {
        disturb(stream, kernel);
    }
}

void Stress::begin(ManagedStream& stream, const schedule::Kernel& kernel) {
    if (kernel.has_door) return one_in(2) ? void(stream.pass_through()) : void(stream.run({}, 0));
    if (kind_ == Kind::kStops) return begin_few(stream, kernel);
    if (kind_ == Kind::kEverything && one_in(4)) {
        stream.pass_through();
    } else {
        stream.run(quotas(most_of(kernel)), one_in(3) ? 1 + below(kernel.blocks - kernel.blocks_done) : 0);
    }
}

// A launch that is large enough has the whole device now and then.
void Stress::begin_few(ManagedStream& stream, const schedule::Kernel& kernel) {
    const uint64_t left = kernel.blocks - kernel.blocks_done,
                   all = places_.size() * static_cast<uint64_t>(most_of(kernel));
    if (one_in(4) && left > 2 * all) {
        stream.pass_through();
    } else {
        const uint64_t workers = 1 + below(std::clamp<uint64_t>(left / kStopsLeft, 1, all));
        stream.run(few(workers, most_of(kernel)), 0);
    }
}

void Stress::stop(ManagedStream& stream) {
    if (stream.passes_through()) {
        told_ |= stream.stop();
    } else if (stream.ready()) {
        stream.halt();
        told_ = true;
    }
    if (!told_) next_ = stream.now();  // at the next look
}

void Stress::disturb(ManagedStream& stream, const schedule::Kernel& kernel) {
    plan(stream);
    if (kind_ == Kind::kStops || kernel.has_door) return stop(stream);
    if (kind_ == Kind::kQuotas)
        return one_in(2) ? stop(stream) : void(stream.grow(1 + static_cast<uint32_t>(below(places_.size()))));
    switch (below(4)) {
        case 0:
            stop(stream);
            break;
        case 1:
            if (stream.ready()) stream.change(quotas(most_of(kernel)));
            break;
        case 2:
            stream.grow(1 + static_cast<uint32_t>(below(static_cast<uint64_t>(multiprocessors_))));
            break;
        default:
            break;
    }
}

}  // namespace smt::runtime::dispatch
