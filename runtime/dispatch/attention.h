// What the dispatcher's thread sees by itself soon, so that a program's thread need not wake it: launches
// that are kept back, which follow as the GPU progresses, and work that begins without a decision.
//
//     the dispatcher's thread            a program's thread
//     takes its word back                does something
//     looks whether there is anything    asks for the word: without it, wakes the dispatcher's thread
//     gives its word, if there is
//
// So what is there before the look is seen by it, and what comes later wakes the thread.
//
// misses_kept_back() and misses_begins(): any thread. The rest: the dispatcher's thread.
#pragma once

#include <atomic>
#include <optional>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class Attention {
public:
    bool misses_kept_back() const { return !kept_back_.load(); }
    bool misses_begins() const { return !begins_.load(); }

    // `look()`: for how long the GPU has work of a stream that keeps launches back; nothing: none does.
    template <class Look>
    std::optional<schedule::Duration> to_kept_back(const Look& look) {
        kept_back_.store(false);
        const std::optional<schedule::Duration> fed = look();
        kept_back_.store(fed.has_value());
        return fed;
    }
    // Whether work is expected to begin or to end: `look()`, or such work was seen less than `lingers` ago.
    template <class Look>
    bool to_begins(schedule::Duration lingers, const Look& look) {
        const schedule::TimePoint now = schedule::Clock::now();  // the host's
        bool found = look();
        if (found) last_ = now;
        found |= now - last_ < lingers;
        if (!found) {
            begins_.store(false);
            found = look();
        }
        if (found) begins_.store(true);
        return found;
    }
    void awake() { begins_.store(true); }  // the thread looks now

private:
    std::atomic<bool> kept_back_{false}, begins_{true};
    schedule::TimePoint last_{};  // when work was last seen
};

}  // namespace smt::runtime::dispatch
