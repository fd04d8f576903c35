// For threads that a program waits for. To wake a sleeper takes tens of microseconds, so they look; and where another thread takes the
// same mutex again and again for short times it is not handed over, so whoever slept on it wakes up to find it taken again.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <mutex>

namespace smt::runtime::dispatch {

// Looks for a few microseconds before it sleeps.
inline std::unique_lock<std::mutex> lock_soon(std::mutex& mutex) {
    constexpr int kLooks = 2000;
    for (int i = 0; i < kLooks; ++i) {
        if (mutex.try_lock()) return {mutex, std::adopt_lock};
        __builtin_ia32_pause();
    }
    return std::unique_lock(mutex);
}

// With one or two processors who looks on would keep the others from the very core that they need.
inline bool cores_to_spare() {
    static const bool spare = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 2;
    }();
    return spare;
}

// Lets others run between two looks. Whether `done` said so within that time.
template <typename Done>
bool look_on(Done done, std::chrono::nanoseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        sched_yield();
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
