// Waiting: first a short spin, because most answers come within microseconds; then further looks,
// because waking a sleeper costs tens of microseconds and most copies and kernels are over within a
// millisecond or two; then sleep in slices of kLivenessMs, looking at each whether the server still lives.
//
// Where the server says that cores are scarce (runtime/device/cores.h) the further looks are a nap apart: who yields is put
// behind everybody who computes, and so is, sooner or later, who looks without end.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace smt::interpose {

// How long to spin, and then to look on, before sleeping: longer when there is a core to spare for the
// server.
uint64_t spin_nanoseconds();
uint64_t look_on_nanoseconds();
bool cores_scarce();
uint64_t now_nanoseconds();

inline void pause_cpu() { __builtin_ia32_pause(); }

// Naps of some microseconds; what the thread's own naps are like afterwards is as it was.
class Naps {
public:
    Naps() = default;
    ~Naps();
    Naps(const Naps&) = delete;
    Naps& operator=(const Naps&) = delete;
    void nap();

private:
    long slack_ = 0;   // of the thread's sleeps, ns, before the first nap; 0: there was none
};

// Until then, unless `done` says so before; whether it was done.
template <typename Done>
bool look_on(Done done, uint64_t end) {
    Naps naps;
    while (now_nanoseconds() < end) {
        if (cores_scarce()) naps.nap();
        else pause_cpu();
        if (done()) return true;
    }
    return done();
}

// Spins and looks on; whether it was done by then.
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

// Until completion word `index` is at least `value`, as long as look_until() looks. Whether it got there.
bool spin_word(uint32_t index, uint64_t value);

}  // namespace smt::interpose
