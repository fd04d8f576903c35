// Locks and waits for threads that a program waits for. Waking a sleeping thread takes tens of microseconds,
// so these spin or poll first (device/cores.h). A mutex that another thread takes again and again for short
// times is not handed over: a thread that sleeps on it wakes up to find it taken again.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "runtime/device/cores.h"

namespace smt::runtime::dispatch {

// Spins for a few microseconds before it sleeps.
inline std::unique_lock<std::mutex> spin_lock(std::mutex& mutex) {
    constexpr int kLooks = 2000;
    for (int i = 0; i < kLooks; ++i) {
        if (mutex.try_lock()) return {mutex, std::adopt_lock};
        __builtin_ia32_pause();
    }
    return std::unique_lock(mutex);
}

// Polls `done`, with a nap between two calls. False: it was not true within `limit`.
template <typename Done>
bool look_on(Done done, std::chrono::nanoseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        device::nap();
    }
    return true;
}

// Counts the threads that want a mutex, so that the thread that takes it often can leave it to them.
class Wanted {
public:
    explicit Wanted(std::atomic<int>& count) : count_(count) {
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Wanted() { count_.fetch_sub(1, std::memory_order_relaxed); }
    Wanted(const Wanted&) = delete;
    Wanted& operator=(const Wanted&) = delete;

private:
    std::atomic<int>& count_;
};

// A lock of such a mutex. It counts while it is wanted, and while it is held.
class WantedLock {
public:
    WantedLock(std::atomic<int>& count, std::mutex& mutex) : wanted_(count), lock_(spin_lock(mutex)) {}

private:
    const Wanted wanted_;
    const std::unique_lock<std::mutex> lock_;
};

}  // namespace smt::runtime::dispatch
