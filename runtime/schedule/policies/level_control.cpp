#include "runtime/schedule/policies/level_control.h"

#include <algorithm>

namespace smt::runtime::schedule {

namespace {

// Part of the distance to the present request by which the slowest one is forgotten.
constexpr double kForgets = 1.0 / 32;

}  // namespace

int LevelControl::needed() const {
    const int each = evidence_[static_cast<size_t>(level_) + 1];
    return slowest_ <= 1 - knobs_.headroom ? each : std::min(each * knobs_.doubtful, knobs_.most_evidence);
}

void LevelControl::note(double time) {
    const bool late = time > 1;
    slowest_ = time >= slowest_ ? time : slowest_ + (time - slowest_) * kForgets;
    score_ = std::clamp(score_ + (late ? 1 : -knobs_.late), 0.0, knobs_.alarm + 1);
    in_a_row_ = late ? 0 : in_a_row_ + 1;
    ++here_;
    tried_ = tried_ && here_ <= knobs_.evidence;
    if (late && level_ > 0 && (tried_ || score_ >= knobs_.alarm)) return step_down();
    if (here_ >= 4 * knobs_.most_evidence && !late) {
        evidence_[static_cast<size_t>(level_)] = knobs_.evidence;
        here_ = 0;
    }
    if (!late && level_ < highest() && in_a_row_ >= needed()) enter(level_ + 1, 0);
}

void LevelControl::step_down() {
    int& evidence = evidence_[static_cast<size_t>(level_)];
    evidence = std::min(evidence * knobs_.backoff, knobs_.most_evidence);
    enter(level_ - 1, knobs_.alarm - 0.5);
}

void LevelControl::enter(int level, double score) {
    tried_ = level > level_;
    level_ = level;
    score_ = score;
    slowest_ = 0;
    in_a_row_ = here_ = 0;
}

}  // namespace smt::runtime::schedule
