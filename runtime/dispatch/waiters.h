// The program's threads that wait for a change of a stream: because its launches are stopped, or until they
// are over.
//
// With its stream's lock, which is not held while a thread waits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "runtime/dispatch/spin_lock.h"

namespace smt::runtime::dispatch {

class Waiters {
public:
    using Lock = std::unique_lock<std::mutex>;

    void wake() {
        changes_.fetch_add(1, std::memory_order_release);
        changed_.notify_all();
    }
    // Until something changes. False: nothing has within `most`.
    bool sleep(Lock& lock, std::chrono::nanoseconds most) {
        return changed_.wait_for(lock, most) != std::cv_status::timeout;
    }
    // Likewise, but polls instead of sleeping.
    bool poll(Lock& lock, std::chrono::nanoseconds most) {
        const uint64_t seen = changes_.load(std::memory_order_relaxed);
        std::mutex& mutex = *lock.mutex();
        lock.unlock();
        look_on([&] { return changes_.load(std::memory_order_acquire) != seen; }, most);
        lock = spin_lock(mutex);
        return changes_.load(std::memory_order_relaxed) != seen;
    }

    // Why they wait, as the policy says; empty: they do not.
    void set_reason(const std::string& reason) { reason_ = reason; }
    const std::string& reason() const { return reason_; }

private:
    std::condition_variable changed_;
    std::atomic<uint64_t> changes_{0};
    std::string reason_;
};

}  // namespace smt::runtime::dispatch
