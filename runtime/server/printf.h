// Device printf. The driver prints into the server's stdout when work is synchronised; at start stdout becomes a memfd.
// What appears there belongs to the session that prints: one at a time may have printing kernels under way.
//
// Who wants to print while another session does waits until that one's printing launches are over: an event stands
// behind the last one of each stream, so other work of that session, before or behind, is not waited for. Sessions
// print in the order in which they came; one that prints again queues behind those that wait. After kTimeout at the
// head of the queue the turn is taken all the same, since a kernel may never end: then lines of both may be mixed up,
// and the log says so.
//
// No lock that another session's calls take is held over a wait or a call of the driver.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include <cuda.h>

namespace smt::runtime::server {

class Session;

class DevicePrintf {
public:
    static constexpr std::chrono::nanoseconds kTimeout = std::chrono::seconds(2);

    explicit DevicePrintf(std::chrono::nanoseconds patience = kTimeout) : patience_(patience) {}
    ~DevicePrintf();
    DevicePrintf(const DevicePrintf&) = delete;
    DevicePrintf& operator=(const DevicePrintf&) = delete;

    bool redirect_stdout();

    // Makes the session the one that prints, when it is its turn, and launches. An error of the driver's is the
    // launch's; DEINITIALIZED: the session ends.
    CUresult launch(Session& session, CUstream stream, const std::function<CUresult()>& launch);
    // After a synchronisation: hands the session what has appeared, if it is the one that prints.
    void collect(Session& session) {
        if (holder_.load(std::memory_order_acquire) == &session) collect_from_stdout(session);
    }
    void leave(Session& session);   // the session ends, and its threads launch no more

private:
    using Lock = std::unique_lock<std::mutex>;
    class Turn;   // one session's, from its first launch to the next session's

    std::shared_ptr<Turn> await_turn(Session& session);
    std::shared_ptr<Turn> hand_over(Session& session);
    void collect_from_stdout(Session& session);
    void collect_locked(Session& session);

    const std::chrono::nanoseconds patience_;
    std::mutex mutex_;
    std::atomic<Session*> holder_{nullptr};
    std::shared_ptr<Turn> turn_;         // the holder's
    std::deque<uint64_t> queue_;         // threads that wait for a turn, by number
    uint64_t numbers_ = 0;
    int file_ = -1;
    uint64_t read_ = 0;                  // bytes of the file already handed over
};

}  // namespace smt::runtime::server
