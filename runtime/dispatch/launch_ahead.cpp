#include "runtime/dispatch/launch_ahead.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;
using Duration = schedule::Duration;

constexpr double kLongest = 3.6e12;  // ns

double blocks_of(const Work& work) { return static_cast<double>(std::max<uint64_t>(1, work.left())); }

}  // namespace

Duration LaunchAhead::cost(const Work& work) const {
    const double known = work.queued().of(blocks_of(work));
    if (known <= 0) return time_ / kUnknown;
    return Duration(static_cast<Duration::rep>(std::clamp(known, 1.0, kLongest)));
}

// How long a stop waits for it, where another launch runs. All CTAs of a grid with doors come to the door,
// also those that an earlier run has admitted.
Duration LaunchAhead::drain(const Work& work) {
    if (work.endures || !work.function->has_door()) return work.cost;
    return std::min(work.cost,
                    kRefused + Duration(static_cast<Duration::rep>(work.total * kRefusedCtaPs / 1000)));
}

void LaunchAhead::issued(Work& work) {
    if (time_ == Duration::zero()) return;
    work.cost = cost(work);
    work.drain = drain(work);
    all_ += work.cost;
    drain_ += work.drain;
    unmarked_ += work.cost;
}

void LaunchAhead::ended(Works::iterator first, Works::iterator last, schedule::TimePoint now, bool more) {
    if (time_ == Duration::zero() || first == last) return;
    Duration expected{};
    for (auto work = first; work != last; ++work) expected += work->cost, drain_ -= work->drain;
    all_ -= expected;
    const Duration took = now - std::exchange(since_, now);
    double late =
        static_cast<double>(took.count()) / static_cast<double>(std::max<Duration::rep>(1, expected.count()));
    // Launches that seem longer than they are would starve the GPU still more.
    if (more && all_ == Duration::zero() && first->queued().block_ps() != 0) late = std::min(late, 1.0);
    for (auto work = first; work != last; ++work)
        work->queued().learn(blocks_of(*work), static_cast<double>(work->cost.count()) * late);
}

std::optional<schedule::TimePoint> LaunchAhead::end(const Works& in_flight) const {
    const bool known =
        std::ranges::all_of(in_flight, [](const Work& each) { return each.queued().block_ps() != 0; });
    return time_ != Duration::zero() && known ? std::optional(since_ + all_) : std::nullopt;
}

bool LaunchAhead::lets_go(const Works& in_flight, schedule::TimePoint now) {
    if (now - std::max(since_, let_go_) < kStall + 4 * in_flight.front().cost) return false;
    let_go_ = now;
    return true;
}

}  // namespace smt::runtime::dispatch
