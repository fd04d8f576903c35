// Futex waits on a word in shared memory. The other process may write or wake it at any time, or never.
// Every wait therefore has a timeout, and its caller checks its condition again.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace smt::runtime {

// Sleeps while `word` is `expected`, at most `milliseconds`.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t milliseconds) {
    timespec limit{milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, &limit, nullptr, 0);
}

inline void futex_wake_all(std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace smt::runtime
