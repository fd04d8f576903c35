// Waiting in three steps. First a short spin, since most answers come within microseconds. Then polling
// (look_on), since a wake-up costs tens of microseconds and most copies and kernels end within one or two
// milliseconds. Then sleep in slices of kLivenessMs, with a check after each that the server still lives.
//
// Where the server reports that cores are scarce (runtime/device/cores.h) the polls are a nap apart: the
// kernel schedules a yielding thread behind all computing threads, and eventually a constantly polling one
// too.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/process/clock.h"

namespace smt::interpose {

// Durations of the spin and of the polling before sleeping; longer when a core is free for the server.
uint64_t spin_nanoseconds();
uint64_t look_on_nanoseconds();
bool cores_scarce();

inline void pause_cpu() { __builtin_ia32_pause(); }

// Naps of some microseconds. The destructor restores the thread's timer slack.
class Naps {
public:
    Naps() = default;
    ~Naps();
    Naps(const Naps&) = delete;
    Naps& operator=(const Naps&) = delete;
    void nap();

private:
    long slack_ = 0;  // the thread's timer slack, ns, before the first nap; 0: no nap yet
};

// Polls until `done` or until `end` (now_nanoseconds()). Returns whether it is done.
template <typename Done>
bool look_on(Done done, uint64_t end) {
    Naps naps;
    while (now_nanoseconds() < end) {
        if (cores_scarce())
            naps.nap();
        else
            pause_cpu();
        if (done()) return true;
    }
    return done();
}

// Spins and polls. Returns whether it is done.
template <typename Done>
bool look_until(Done done) {
    constexpr int kPausesPerLook = 32;
    if (done()) return true;
    uint64_t start = now_nanoseconds();
    do {
        for (int i = 0; i < kPausesPerLook; ++i) {
            pause_cpu();
            if (done()) return true;
        }
    } while (now_nanoseconds() - start < spin_nanoseconds());
    return look_on(done, start + look_on_nanoseconds());
}

// Sleeps while *word is `expected`, `milliseconds` at most. The words lie in shared memory.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t milliseconds);
void futex_wake(std::atomic<uint32_t>& word);

// Polls as long as look_until() until completion word `index` is at least `value`. Returns whether it is.
bool spin_word(uint32_t index, uint64_t value);

}  // namespace smt::interpose
