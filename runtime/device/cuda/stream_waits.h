// Streams that wait for what a program has yet to do: for a value in memory, or in a graph for a host function. Each wait has
// an event behind it, so it is over when the stream has passed it, whatever the stream does next.
//
// When a session's program is gone nothing will end its waits: release() writes the values that they wait for.
//
// Any thread. A session's number and name are those of the thread that enqueues (held_up.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::device {

class Guest;

class StreamWaits {
public:
    using Clock = std::chrono::steady_clock;

    // One comparison that a stream waits for.
    struct Word {
        CUdeviceptr address = 0;
        uint64_t value = 0;
        unsigned flags = 0;
        bool wide = false;   // 64 bits
    };
    // False: no value of the word ends the wait.
    static bool can_end(const Word& word);

    struct Waiter {
        uint32_t session = 0;   // 0: no session's
        std::string what;       // "cuStreamWaitValue32 of bob"
        Clock::time_point since;
    };

    explicit StreamWaits(const DriverApi& real) : real_(real) {}

    // Around the call that enqueues: the wait counts from before the call.
    uint64_t begin(CUstream stream, const char* call, std::vector<Word> words);
    void enqueued(CUstream stream, uint64_t number, CUresult status);
    // Of a graph; a launch of any of the session's graphs may wait for it.
    void captured(const std::vector<Word>& words);
    std::vector<Word> captured() const;

    bool any();   // some stream waits
    // The eldest wait of another session than this one.
    std::optional<Waiter> eldest(uint32_t beside);
    void end_session(uint32_t session, const std::string& why);

    // Called again and again until the session's streams are idle: a stream may have several waits, and each is ended in
    // its turn. Writes on the stream `errands`.
    void release(const Guest& guest, CUstream errands);
    void forget(const Guest& guest);   // which ceases to exist

private:
    struct Wait {
        uint64_t number;
        Guest* guest;
        Waiter waiter;
        std::vector<Word> words;
        CUevent behind = nullptr;   // null: not enqueued yet, or there is no event; then the stream has to be idle
        bool enqueued = false;
    };
    using Stream = std::deque<Wait>;   // in the stream's order

    bool is_over(CUstream stream, const Wait& wait) const;
    void prune(CUstream stream, Stream& waits, size_t most);
    void prune();
    void end(const Word& word, CUstream errands) const;

    const DriverApi& real_;
    mutable std::mutex mutex_;   // the rest
    std::unordered_map<CUstream, Stream> streams_;
    std::unordered_map<const Guest*, std::vector<Word>> captured_;
    std::vector<CUevent> events_;   // free ones
    uint64_t numbers_ = 0, releases_ = 0;
};

}  // namespace smt::runtime::device
