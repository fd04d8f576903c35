// Device printf. The driver prints into the server's stdout when work is synchronised. At start stdout
// becomes a memfd. Its text belongs to the session that holds the printing turn: only that session may have
// printing kernels under way.
//
// A launch that prints while another session holds the turn waits until that session's printing launches are
// complete. An event follows the last such launch of each stream, so the session's other work, earlier or
// later, is not waited for. Sessions get the turn in order of arrival; a session that prints again queues
// behind those that wait. After kTimeout at the head of the queue a launch takes the turn without that, since
// a kernel may never end. Lines of both sessions may then be mixed, and the log says so.
//
// No lock that another session's calls take is held over a wait or a driver call.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

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

    // Waits for the printing turn, takes it for the session, and calls `launch`. Returns the result of
    // `launch`; DEINITIALIZED: the session ends.
    CUresult launch(Session& session, CUstream stream, const std::function<CUresult()>& launch);
    // To be called after a synchronisation: passes new text to the session if it holds the turn.
    void collect(Session& session) {
        if (holder_.load(std::memory_order_acquire) == &session) collect_from_stdout(session);
    }
    void leave(Session& session);  // the session ends; its threads launch no more

private:
    using Lock = std::unique_lock<std::mutex>;
    class Turn;  // lasts from a session's first printing launch to the next session's

    std::shared_ptr<Turn> await_turn(Session& session);
    std::shared_ptr<Turn> hand_over(Session& session);
    void collect_from_stdout(Session& session);
    void collect_locked(Session& session);

    const std::chrono::nanoseconds patience_;
    std::mutex mutex_;
    std::atomic<Session*> holder_{nullptr};
    std::shared_ptr<Turn> turn_;  // the holder's
    std::deque<uint64_t> queue_;  // numbers of the threads that wait for the turn
    uint64_t numbers_ = 0;
    int file_ = -1;
    uint64_t read_ = 0;  // bytes of the file already passed to sessions
};

}  // namespace smt::runtime::server
