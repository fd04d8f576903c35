// Waiting: first a short spin, because most answers come within microseconds; then looks between
// which other threads may run, because waking a sleeper costs tens of microseconds and most copies
// and kernels are over within a millisecond or two; then sleep in slices of kLivenessMs, looking at
// each whether the server still lives.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace smt::interpose {

// How long to spin, and then to yield, before sleeping: longer when there is a core to spare for the
// server.
uint64_t spin_nanoseconds();
uint64_t yield_nanoseconds();
uint64_t now_nanoseconds();

void yield_cpu();
inline void pause_cpu() { __builtin_ia32_pause(); }

// Spins, then yields, until `done` says so or the time for both is over; whether it was done.
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
    while (now_nanoseconds() - start < yield_nanoseconds()) {
        yield_cpu();
        if (done()) return true;
    }
    return done();
}

// Sleeps while *word is `expected`, `milliseconds` at most. The words lie in shared memory.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t milliseconds);
void futex_wake(std::atomic<uint32_t>& word);

// Until completion word `index` is at least `value`, without sleeping, as long as look_until() looks. Whether it got there.
bool spin_word(uint32_t index, uint64_t value);

}  // namespace smt::interpose
