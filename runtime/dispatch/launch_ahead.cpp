#include "runtime/dispatch/launch_ahead.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;
using Duration = schedule::Duration;

constexpr double kPicoseconds = 1000;
constexpr double kShare = 1.0 / 8;   // weight of one launch in the known cost
constexpr double kMostLate = 8;      // times the expected cost: more than that has another cause
constexpr double kLongest = 3.6e12;  // ns

double blocks_of(const Work& work) { return static_cast<double>(std::max<uint64_t>(1, work.left())); }

// Learns from a launch that took `late` times what was expected.
void learn(const Work& work, double expected_ns, double late) {
    const double each = expected_ns * kPicoseconds / blocks_of(work);
    const auto known = static_cast<double>(work.function->block_cost_ps.load(std::memory_order_relaxed));
    const double now = known > 0 ? known + (each * std::min(late, kMostLate) - known) * kShare : each * late;
    work.function->block_cost_ps.store(static_cast<uint64_t>(std::max(1.0, now)), std::memory_order_relaxed);
}

}  // namespace

Duration LaunchAhead::cost(const Work& work) const {
    const uint64_t each = work.function->block_cost_ps.load(std::memory_order_relaxed);
    if (each == 0) return time_ / kUnknown;
    return Duration(static_cast<Duration::rep>(
        std::clamp(static_cast<double>(each) * blocks_of(work) / kPicoseconds, 1.0, kLongest)));
}

void LaunchAhead::issued(Work& work) {
    if (time_ == Duration::zero()) return;
    work.cost = cost(work);
    all_ += work.cost;
    unmarked_ += work.cost;
}

void LaunchAhead::ended(Works::iterator first, Works::iterator last, schedule::TimePoint now) {
    if (time_ == Duration::zero() || first == last) return;
    Duration expected{};
    for (auto work = first; work != last; ++work) expected += work->cost;
    all_ -= expected;
    const Duration took = now - std::exchange(since_, now);
    const double late =
        static_cast<double>(took.count()) / static_cast<double>(std::max<Duration::rep>(1, expected.count()));
    for (auto work = first; work != last; ++work) learn(*work, static_cast<double>(work->cost.count()), late);
}

std::optional<schedule::TimePoint> LaunchAhead::end(const Works& in_flight) const {
    const bool known = std::all_of(in_flight.begin(), in_flight.end(), [](const Work& each) {
        return each.function->block_cost_ps.load(std::memory_order_relaxed) != 0;
    });
    return time_ != Duration::zero() && known ? std::optional(since_ + all_) : std::nullopt;
}

bool LaunchAhead::lets_go(const Works& in_flight, schedule::TimePoint now) {
    if (now - std::max(since_, let_go_) < kStall + 4 * in_flight.front().cost) return false;
    let_go_ = now;
    return true;
}

}  // namespace smt::runtime::dispatch
