#include "runtime/dispatch/activity.h"

#include <utility>

namespace smt::runtime::dispatch {

void Activity::begins(TimePoint now) {
    if (streams_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
    const TimePoint ended = ended_.load(std::memory_order_relaxed);
    if (now - ended >= schedule::kLeastPause) {
        const std::lock_guard lock(mutex_);
        if (pauses_.size() == kMostPauses) pauses_.pop_front(), ++forgotten_;
        pauses_.push_back({ended, now, launches_then_.load(std::memory_order_relaxed),
                           over_then_.load(std::memory_order_relaxed)});
    }
    began_.store(now, std::memory_order_release);
}

void Activity::ends(TimePoint now) {
    ended_.store(now, std::memory_order_relaxed);
    launches_then_.store(launches(), std::memory_order_relaxed);
    over_then_.store(over(), std::memory_order_relaxed);
    streams_.fetch_sub(1, std::memory_order_acq_rel);
}

// Pauses last: a begin that is known has its pause told.
schedule::Activity Activity::take() {
    schedule::Activity taken;
    taken.works = streams_.load(std::memory_order_acquire) != 0;
    taken.began = began_.load(std::memory_order_acquire);
    taken.ended = ended_.load(std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    taken.pauses.assign(pauses_.begin(), pauses_.end());
    pauses_.clear();
    taken.forgotten = std::exchange(forgotten_, 0);
    return taken;
}

}  // namespace smt::runtime::dispatch
