// Device printf. The driver prints into the server's stdout when work is synchronised; at start
// stdout becomes a memfd. What appears there belongs to the holder: the one session that may have
// printing kernels under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include <cuda.h>

namespace smt::runtime::server {

class Session;

class DevicePrintf {
public:
    DevicePrintf() = default;
    ~DevicePrintf();
    DevicePrintf(const DevicePrintf&) = delete;
    DevicePrintf& operator=(const DevicePrintf&) = delete;

    bool redirect_stdout();

    // Before a kernel that prints is launched: makes the session the holder, after the work of the
    // holder before is complete and its output collected. Keep the lock until the launch is enqueued.
    std::unique_lock<std::mutex> launching(Session& session);
    // After a synchronisation: hands the session what has appeared, if it is the holder.
    void collect(Session& session) {
        if (holder_.load(std::memory_order_acquire) == &session) collect_from_stdout(session);
    }
    void leave(Session& session);   // the session ends; its work is over

private:
    void collect_from_stdout(Session& session);
    void collect_locked(Session& session);

    std::mutex mutex_;
    std::atomic<Session*> holder_{nullptr};
    int file_ = -1;
    uint64_t read_ = 0;             // bytes of the file already handed over
};

}  // namespace smt::runtime::server
