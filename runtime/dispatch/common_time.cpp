#include "runtime/dispatch/common_time.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::dispatch {

void CommonTime::look(schedule::TimePoint now, const std::array<Seen, 2>& seen) {
    const auto goes_on = [&](size_t i) { return seen[i].launch == sides_[i].launch && seen[i].blocks >= sides_[i].last; };
    const bool both = seen[0].at_work && seen[1].at_work;
    if (!both || !goes_on(0) || !goes_on(1)) interrupt();
    if (!both) return;
    if (!together_) {
        together_ = now;
        for (size_t i = 0; i < 2; ++i) sides_[i] = {seen[i].launch, seen[i].blocks, seen[i].blocks, {}, 0, {}};
    }
    settled_ = settled_ || settled(now, seen);
    for (size_t i = 0; i < 2; ++i) {
        Side& side = sides_[i];
        if (std::exchange(side.last, seen[i].blocks) == seen[i].blocks || !settled_) continue;
        if (!side.begun) side.begun = now, side.first = seen[i].blocks;
        const uint64_t blocks = seen[i].blocks - side.first, rounds = blocks / std::max<uint64_t>(seen[i].round, 1);
        if (rounds > side.whole.rounds) side.whole = {blocks, rounds, now - *side.begun};
    }
}

bool CommonTime::settled(schedule::TimePoint now, const std::array<Seen, 2>& seen) const {
    const auto begun = [&](size_t i) { return seen[i].blocks - sides_[i].before >= seen[i].round; };
    return now - *together_ >= kSettles && (now - *together_ >= kSettlesAtMost || (begun(0) && begun(1)));
}

void CommonTime::interrupt() {
    before_ = done();
    sides_ = {};
    together_.reset();
    settled_ = false;
}

std::array<CommonTime::Done, 2> CommonTime::done() const {
    std::array<Done, 2> sums = before_;
    for (size_t i = 0; i < 2; ++i) {
        sums[i].blocks += sides_[i].whole.blocks;
        sums[i].rounds += sides_[i].whole.rounds;
        sums[i].time += sides_[i].whole.time;
    }
    return sums;
}

}  // namespace smt::runtime::dispatch
