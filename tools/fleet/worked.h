// A service's work, told by hand as its streams would tell it.
#pragma once

#include "runtime/schedule/snapshot.h"

namespace smt::fleet {

struct Worked : runtime::schedule::Service {
    // From now on it has work, or none; take() tells the policy.
    void works(bool now_works, runtime::schedule::TimePoint now) {
        if (now_works == activity.works) return;
        activity.works = now_works;
        if (!now_works) {
            activity.ended = now;
            at_end_ = {.launches = launches, .over = over};
        } else {
            if (now - activity.ended >= runtime::schedule::kLeastPause)
                activity.pauses.push_back({activity.ended, now, at_end_.launches, at_end_.over});
            activity.began = now;
        }
    }
    runtime::schedule::Service take() {
        runtime::schedule::Service taken = *this;
        activity.pauses.clear();
        return taken;
    }

private:
    runtime::schedule::Pause at_end_;
};

}  // namespace smt::fleet
