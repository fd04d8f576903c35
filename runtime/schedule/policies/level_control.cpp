#include "runtime/schedule/policies/level_control.h"

#include <algorithm>

namespace smt::runtime::schedule {

namespace {

// Part of the distance to the present request by which the slowest one is forgotten.
constexpr double kForgets = 1.0 / 32;

}  // namespace

int LevelControl::needed() const {
    const int each = evidence_[static_cast<size_t>(level_) + 1];
    if (slowest_ > 1 - knobs_.headroom) return std::min(each * knobs_.doubtful, knobs_.most_evidence);
    return slowest_ <= 1 - knobs_.large && each <= knobs_.evidence ? std::max(1, each / 2) : each;
}

bool LevelControl::worth(double part) const {
    return level_ == 0 || part * level_ >= (level_ == 1 ? knobs_.least_part : level_ - 1);
}

void LevelControl::note(double time, double part) {
    const bool late = time > 1;
    slowest_ = time >= slowest_ ? time : slowest_ + (time - slowest_) * kForgets;
    score_ = std::clamp(score_ + (late ? 1 : -knobs_.late), 0.0, knobs_.alarm + 1);
    in_a_row_ = late ? 0 : in_a_row_ + 1;
    wasted_ = std::max(0, wasted_ + (worth(part) ? -1 : 1));
    ++here_;
    tried_ = tried_ && here_ <= knobs_.tried;
    if (late && tried_) return step_down(before_);
    if (late && level_ > 0 && score_ >= knobs_.alarm) return step_down(level_ / 2);
    if (wasted_ >= knobs_.wasted) return step_down(level_ - 1);
    if (here_ >= 4 * knobs_.most_evidence && !late) {
        evidence_[static_cast<size_t>(level_)] = knobs_.evidence;
        here_ = 0;
    }
    if (!late && level_ < highest() && in_a_row_ >= needed()) step_up();
}

// Past no level that has failed.
void LevelControl::step_up() {
    int to = level_ + 1;
    const int most = std::min(level_ + step_, std::max(to, highest() - 1));
    while (to < most && evidence_[static_cast<size_t>(to) + 1] <= knobs_.evidence) ++to;
    before_ = level_;
    step_ = std::min(2 * step_, knobs_.longest_step);
    enter(to, 0);
    tried_ = true;
}

void LevelControl::step_down(int to) {
    int& evidence = evidence_[static_cast<size_t>(level_)];
    evidence = std::min(evidence * knobs_.backoff, knobs_.most_evidence);
    step_ = 1;
    enter(to, knobs_.alarm - 0.5);
}

void LevelControl::enter(int level, double score) {
    tried_ = false;
    level_ = level;
    score_ = score;
    slowest_ = 0;
    in_a_row_ = here_ = wasted_ = 0;
}

}  // namespace smt::runtime::schedule
