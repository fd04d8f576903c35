// The clock of deadlines and waits.
#pragma once

#include <time.h>

#include <cstdint>

namespace smt::interpose {

// CLOCK_MONOTONIC.
inline uint64_t now_nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace smt::interpose
