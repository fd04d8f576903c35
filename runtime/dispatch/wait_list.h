// The waits of one stream, in its order: for a value, by an event, or in a graph.
//
// A wait for a value or by an event holds the stream up until it is over. What the event waits for is work of
// the stream that records it, and counts there. A graph's launch holds the stream up while one of its nodes
// waits, which a WaitWord says; otherwise the graph is work.
//
// Not thread-safe, but for any().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace smt::runtime::dispatch {

// A word that tells whether something waits. Written by the GPU or by any thread.
struct WaitWord {
    std::shared_ptr<const std::atomic<uint64_t>> word;  // null: nothing waits
    uint64_t resting = 0;                               // its value while nothing waits
    bool waits() const { return word && word->load(std::memory_order_acquire) != resting; }
};
using WaitWords = std::vector<WaitWord>;

class WaitList {
public:
    // Work in front of a wait: launches up to a number, other work up to a marker.
    struct Place {
        uint64_t launches = 0;
        uint64_t marker = 0;
    };

    WaitList() = default;
    ~WaitList();  // its waits are over
    WaitList(const WaitList&) = delete;
    WaitList& operator=(const WaitList&) = delete;

    // The number of the new wait. `nodes`: of a graph's launch; empty: the stream itself waits.
    uint64_t add(const Place& place, WaitWords nodes = {});
    void remove(uint64_t number);
    void end(uint64_t number);  // waits up to this one are over

    bool empty() const { return waits_.empty(); }
    bool any() const { return any_.load(std::memory_order_acquire); }  // any thread
    size_t size() const { return waits_.size(); }
    // Of the first wait. Precondition: not empty().
    const Place& place() const { return waits_.front().place; }
    bool holds_up() const;  // once what is in front of it is over
    // Waits until the last wait is over.
    WaitWord last() const;

private:
    struct Wait {
        uint64_t number;
        Place place;
        WaitWords nodes;
        std::shared_ptr<std::atomic<uint64_t>> pending;  // 1, then 0
    };

    std::deque<Wait> waits_;
    std::atomic<bool> any_{false};
    uint64_t numbers_ = 0;
};

}  // namespace smt::runtime::dispatch
