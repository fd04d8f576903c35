// The registry of stream waits for a program's action: for a value in memory, or for a host function in a
// graph. Each wait is followed by an event, so it counts as ended when the stream has passed it, independent
// of later work.
//
// If a session's program is gone no action ends its waits: release() writes the values that they wait for.
//
// Any thread. The session's number and name are those of the enqueuing thread (held_up.h).
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::device {

class Guest;

class StreamWaits {
public:
    using Clock = std::chrono::steady_clock;

    // One comparison of a stream's wait.
    struct Word {
        CUdeviceptr address = 0;
        uint64_t value = 0;
        unsigned flags = 0;
        bool wide = false;  // 64 bits
        auto operator<=>(const Word&) const = default;
    };
    using Words = std::shared_ptr<const std::vector<Word>>;  // never null
    // False: no value of the word ends the wait.
    static bool can_end(const Word& word);

    struct Waiter {
        uint32_t session = 0;  // 0: no session
        std::string what;      // "cuStreamWaitValue32 of bob"
        Clock::time_point since;
    };

    explicit StreamWaits(const DriverApi& real) : real_(real) {}

    // begin() is called before the call that enqueues the wait, enqueued() after it. The wait counts from
    // begin().
    uint64_t begin(CUstream stream, const char* call, Words words);
    void enqueued(CUstream stream, uint64_t number, CUresult status);
    // Words captured into a graph. Each launch of one of the session's graphs may wait for them, and such a
    // launch may itself be captured. The launches share the list. Of one address it has a few words,
    // however many values are waited for; except for equality, where each value counts.
    void captured(const std::vector<Word>& words);
    Words captured();

    bool any();  // whether a stream waits
    // The oldest wait of a session other than `beside`.
    std::optional<Waiter> eldest(uint32_t beside);
    void end_session(uint32_t session, const std::string& why);

    // Called repeatedly until the session's streams are idle: a stream may have several waits, which end one
    // after the other. The writes are enqueued on the stream `errands`.
    void release(const Guest& guest, CUstream errands);
    void forget(const Guest& guest);  // before the guest is destroyed

private:
    struct Wait {
        uint64_t number;
        Guest* guest;
        Waiter waiter;
        Words words;
        CUevent behind = nullptr;  // null: not enqueued yet, or no event: ended when the stream is idle
        bool enqueued = false;
    };
    using Stream = std::deque<Wait>;  // in the stream's order
    struct Captured {
        std::map<std::tuple<CUdeviceptr, unsigned, bool, uint64_t>, Word> words;  // by key_of()
        Words list;  // of the words; null: to be made anew
    };

    bool is_over(CUstream stream, const Wait& wait) const;
    void prune(CUstream stream, Stream& waits, size_t most);
    void prune();
    void end(const Word& word, CUstream errands) const;

    const DriverApi& real_;
    std::mutex mutex_;  // guards the members below
    std::unordered_map<CUstream, Stream> streams_;
    std::unordered_map<const Guest*, Captured> captured_;
    std::vector<CUevent> events_;  // free events
    uint64_t numbers_ = 0, releases_ = 0;
};

}  // namespace smt::runtime::device
