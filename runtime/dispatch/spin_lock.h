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

// A mutex that counts the threads that want it, so that the thread that takes it often can leave it to them.
class WantedMutex {
public:
    using Hold = std::unique_lock<std::mutex>;

    // It counts while it is waited for, and while it is held.
    class Lock {
    public:
        explicit Lock(WantedMutex& mutex) : mutex_(mutex) {
            mutex_.wanted_.fetch_add(1, std::memory_order_relaxed);
            hold_ = spin_lock(mutex_.mutex_);
        }
        ~Lock() {
            hold_.unlock();
            mutex_.wanted_.fetch_sub(1, std::memory_order_relaxed);
        }
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;

    private:
        WantedMutex& mutex_;
        Hold hold_;
    };
    // For a thread that gives it back in order to wait: from then on it is not wanted.
    Hold hold() {
        wanted_.fetch_add(1, std::memory_order_relaxed);
        Hold held = spin_lock(mutex_);
        wanted_.fetch_sub(1, std::memory_order_relaxed);
        return held;
    }
    Hold take() { return Hold(mutex_); }  // for the thread that takes it often
    bool wanted() const { return wanted_.load(std::memory_order_relaxed) > 0; }

private:
    std::mutex mutex_;
    std::atomic<int> wanted_{0};
};

}  // namespace smt::runtime::dispatch
