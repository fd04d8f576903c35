#include "runtime/dispatch/common_time.h"

#include <algorithm>

namespace smt::runtime::dispatch {

using schedule::Duration;
using schedule::TimePoint;

void CommonTime::look(TimePoint now, const std::array<Seen, 2>& seen) {
    const auto goes_on = [&](size_t i) {
        return seen[i].launch == sides_[i].launch && seen[i].blocks >= sides_[i].last;
    };
    const bool both = seen[0].at_work && seen[1].at_work;
    if (!both || !goes_on(0) || !goes_on(1)) interrupt();
    if (!both) return;
    if (!together_) {
        together_ = now;
        for (size_t i = 0; i < 2; ++i) {
            sides_[i].launch = seen[i].launch, sides_[i].round = std::max<uint64_t>(seen[i].round, 1);
            sides_[i].last = seen[i].blocks;
        }
    }
    for (size_t i = 0; i < 2; ++i) sides_[i].follow(now, seen[i].blocks, begun_.has_value());
    if (!begun_ && now - *together_ >= kSettles) {
        begun_ = now;
        for (Side& side : sides_) side.begun = side.last;
    }
    last_ = now;
}

// `counts`: the stretch has begun.
void CommonTime::Side::follow(TimePoint now, uint64_t blocks, bool counts) {
    if (blocks == last) return;
    last = blocks;
    if (first && (blocks - first->blocks) / round == rounds) return;
    const Mark here{now, blocks};
    if (!first || !counts) {
        first = whole = here;
        return;
    }
    longest = std::max(longest, now - whole.at);
    whole = here;
    rounds = (blocks - first->blocks) / round;
}

std::optional<double> CommonTime::Side::by_rounds(TimePoint from, TimePoint until) const {
    if (rounds == 0) return std::nullopt;
    const double each = std::chrono::duration<double>(whole.at - first->at).count() /
                        static_cast<double>(whole.blocks - first->blocks);
    if (std::chrono::duration<double>(until - from).count() < each * static_cast<double>(round))
        return std::nullopt;
    const auto at = [&](TimePoint when, const Mark& mark) {  // at most what was ever done between two marks
        return static_cast<double>(mark.blocks) +
               std::chrono::duration<double>(std::clamp(when - mark.at, -longest, longest)).count() / each;
    };
    return at(until, whole) - at(from, *first);
}

void CommonTime::interrupt() {
    if (begun_) {
        for (size_t i = 0; i < 2; ++i)
            add(before_[i], sides_[i],
                sides_[i]
                    .by_rounds(*begun_, last_)
                    .value_or(static_cast<double>(sides_[i].last - sides_[i].begun)));
        time_before_ += last_ - *begun_;
    }
    sides_ = {};
    together_.reset();
    begun_.reset();
}

void CommonTime::add(Done& to, const Side& side, double blocks) {
    to.blocks += blocks;
    to.rounds += blocks / static_cast<double>(side.round);
}

bool CommonTime::told() const {
    return begun_ && std::ranges::all_of(sides_, [&](const Side& side) {
               return side.by_rounds(*begun_, last_).has_value();
           });
}

std::array<CommonTime::Done, 2> CommonTime::done() const {
    std::array<Done, 2> sums = before_;
    if (!told()) return sums;
    for (size_t i = 0; i < 2; ++i)
        add(sums[i], sides_[i], sides_[i].by_rounds(*begun_, last_).value_or(0));  // told: there are some
    return sums;
}

Duration CommonTime::time() const { return told() ? time_before_ + (last_ - *begun_) : time_before_; }

}  // namespace smt::runtime::dispatch
