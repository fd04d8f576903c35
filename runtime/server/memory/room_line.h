// Allocations that wait until there is room for them (SMT_MEMORY_WAIT), in the order in which they began to.
//
// One that has found none tries again when memory was given back, unless an earlier one of the same tenant
// waits, or an earlier one of another tenant that waits for the device's memory: that would need what this
// one takes. A tenant at its limit holds up no other. An allocation that finds room when it is made does not
// stand in the line.
//
//     limit  A 4 GiB         line  A: 2 GiB (limit), B: 8 GiB (device), A: 1 GiB, C: 1 GiB
//     who may try            A's first, B's                       behind B: C; behind A's first: A's second
//
// Any thread. No lock is held while one tries.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

namespace smt::runtime::server {

class RoomLine {
public:
    static RoomLine& of_process();

    enum class For { kLimit, kDevice };  // what there was no room in
    enum class Tried { kDone, kNoRoomInLimit, kNoRoomInDevice };
    struct Waiter {
        const void* tenant;  // compared only
        For reason;          // why it has found no room so far
        std::chrono::steady_clock::time_point until;
        std::function<Tried()> attempt;  // kDone: with room, or without for another reason
        std::function<bool()> gives_up;  // asked each kLook at least
    };
    // Until an attempt is done. False: it was not, by then or when the caller gave up.
    bool wait(const Waiter& waiter);

    // Something was given back, or a limit is higher.
    void note_room() {
        if (waiting_.load(std::memory_order_relaxed) != 0) wake();
    }

private:
    struct Place {
        const void* tenant;
        For reason;
    };
    using Places = std::list<Place>;

    bool may_try(Places::const_iterator place) const;
    void wake();

    std::mutex mutex_;
    std::condition_variable changed_;
    Places line_;
    uint64_t changes_ = 0;
    std::atomic<uint32_t> waiting_{0};  // size of line_
};

}  // namespace smt::runtime::server
