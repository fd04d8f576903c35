// Trials of a tenant under share: the others wait for a moment, so that it is learnt what its kernels take
// alone. One is due where much of what the tenant received was guessed, or where it was not measured lately
// how far off what is known is. A trial in vain makes the next one later: some tenants have kernels that take
// longer than a trial. Not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>

#include "runtime/schedule/policies/knobs.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

class ShareTrials {
public:
    explicit ShareTrials(TimePoint now) : measured_(now) {}

    // Of several sessions the one with the most measurements counts.
    void note_correction(const Kernel& kernel, const ShareKnobs& knobs, TimePoint now) {
        if (kernel.corrections <= corrections_) return;
        agrees_ = corrections_ > 0 && std::abs(kernel.correction - correction_) <= knobs.agree * correction_;
        correction_ = kernel.correction;
        corrections_ = kernel.corrections;
        measured_ = now;
    }
    void received(double ns, double guessed_ns) {
        all_ += ns;
        guessed_ += guessed_ns;
    }
    bool is_due(const ShareKnobs& knobs, TimePoint now) const {
        if (all_ < ns_of(knobs.trial)) return false;
        if (guessed_ >= knobs.guessed * all_) return true;
        return now - measured_ >= (agrees_ ? knobs.between_known : knobs.between_trials);
    }
    // Precondition: is_due(). The time until another one may begin.
    Duration begin(const ShareKnobs& knobs) {
        const double guessed = guessed_ / all_;
        const bool first = guessed_before_ > 1;
        const bool taught = corrections_ != corrections_before_ ||
                            (guessed_before_ >= knobs.guessed && guessed <= kStillGuessed * guessed_before_);
        in_vain_ = first || taught ? 0 : in_vain_ + 1;
        guessed_before_ = guessed;
        corrections_before_ = corrections_;
        all_ = guessed_ = 0;
        return knobs.between_trials * (1 << std::min(in_vain_, kMostDoubled));
    }

private:
    static constexpr int kMostDoubled = 6;
    static constexpr double kStillGuessed = 0.8;  // of what was guessed before a trial: it was in vain

    double all_ = 0, guessed_ = 0;  // ns received since the last one
    double guessed_before_ = 2;     // part of `all_` when the last one began; 2: there was none
    int in_vain_ = 0;               // that taught little
    double correction_ = 1;         // the last measurement, and how many there are
    uint32_t corrections_ = 0, corrections_before_ = 0;  // when the last trial began
    TimePoint measured_;                                 // when, or when it was new
    bool agrees_ = false;                                // with the one before
};

}  // namespace smt::runtime::schedule
