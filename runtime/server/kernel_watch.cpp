#include "runtime/server/kernel_watch.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::server {

// Another stream may have the room that this launch needs.
bool KernelWatch::could_wait(const Seat& seat, const std::vector<Seat>& seats) const {
    if (seat.running.seen) return false;
    const auto order = seen_.at(seat.stream).order;
    return std::any_of(seats.begin(), seats.end(), [&](const Seat& other) {
        return other.stream != seat.stream &&
               (other.priority > seat.priority || seen_.at(other.stream).order < order);
    });
}

std::optional<KernelWatch::Overdue> KernelWatch::look(schedule::TimePoint now,
                                                      const std::vector<Seat>& seats) {
    const schedule::Duration step =
        last_look_ ? std::min(now - *last_look_, kLongestStep) : schedule::Duration::zero();
    last_look_ = now;
    ++looks_;
    std::unordered_map<uint64_t, Seen> before = std::exchange(seen_, {});
    std::vector<bool> goes_on(seats.size());
    for (size_t i = 0; i < seats.size(); ++i) {
        const dispatch::Running& running = seats[i].running;
        const auto found = before.find(seats[i].stream);
        const bool known = found != before.end() && found->second.launch == running.launch;
        Seen seen = known ? found->second : Seen{.launch = running.launch, .order = {looks_, running.issued}};
        goes_on[i] = known && seen.progress == running.progress;
        if (!goes_on[i]) seen.lasted = {};
        seen.progress = running.progress;
        seen_[seats[i].stream] = seen;
    }
    std::optional<Overdue> first;
    longest_ = {};
    for (size_t i = 0; i < seats.size(); ++i) {
        const Seat& seat = seats[i];
        Seen& seen = seen_[seat.stream];
        if (goes_on[i] && !could_wait(seat, seats)) seen.lasted += step;
        if (seat.limit == schedule::Duration::zero()) continue;
        longest_ = std::max(longest_, seen.lasted);
        if (seen.lasted <= seat.limit) continue;
        if (!first || seen.order < seen_[first->seat.stream].order) first = {seat, seen.lasted};
    }
    return first;
}

}  // namespace smt::runtime::server
