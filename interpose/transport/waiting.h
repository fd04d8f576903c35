// Waiting: first a short spin, because most answers come within microseconds, then sleep in slices
// of kLivenessMs, looking at each whether the server still lives.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace smt::interpose {

// How long to spin before sleeping: longer when there is a core to spare for the server.
uint64_t spin_nanoseconds();
uint64_t now_nanoseconds();

inline void pause_cpu() { __builtin_ia32_pause(); }

// Sleeps while *word is `expected`, `milliseconds` at most. The words lie in shared memory.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t milliseconds);
void futex_wake(std::atomic<uint32_t>& word);

// Until completion word `index` is at least `value`. SUCCESS, or the sticky error. The GPU writes
// these words and wakes nobody, so the sleep after the spin is a short nap that grows.
CUresult wait_word(uint32_t index, uint64_t value);
// Spins for spin_nanoseconds() at most; whether the word got there.
bool spin_word(uint32_t index, uint64_t value);

}  // namespace smt::interpose
