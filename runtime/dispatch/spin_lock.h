// For threads that a program waits for. To wake a sleeper takes tens of microseconds, so they look (device/cores.h); and where another thread takes the
// same mutex again and again for short times it is not handed over, so whoever slept on it wakes up to find it taken again.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "runtime/device/cores.h"

namespace smt::runtime::dispatch {

// Looks for a few microseconds before it sleeps.
inline std::unique_lock<std::mutex> spin_lock(std::mutex& mutex) {
    constexpr int kLooks = 2000;
    for (int i = 0; i < kLooks; ++i) {
        if (mutex.try_lock()) return {mutex, std::adopt_lock};
        __builtin_ia32_pause();
    }
    return std::unique_lock(mutex);
}

// Naps between two looks. Whether `done` said so within that time.
template <typename Done>
bool look_on(Done done, std::chrono::nanoseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        device::nap();
    }
    return true;
}

// Counts who wants a mutex, so that the other thread can leave it to them.
class Wanted {
public:
    explicit Wanted(std::atomic<int>& count) : count_(count) { count_.fetch_add(1, std::memory_order_relaxed); }
    ~Wanted() { count_.fetch_sub(1, std::memory_order_relaxed); }
    Wanted(const Wanted&) = delete;
    Wanted& operator=(const Wanted&) = delete;

private:
    std::atomic<int>& count_;
};

}  // namespace smt::runtime::dispatch
