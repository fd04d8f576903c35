// What a session has launched lately, as its records, so that after a fault the launches that were under way
// can be executed again (reissue.cpp). Kept where a takeover is expected only.
//
// In the log are launches and records of events, in the order in which they were made, and copies to the host
// that are over. Whatever else may change memory, or the order of streams, empties it: what came before that
// is not executed again. So does the end of a capture, whose launches were none. What only asks leaves it
// alone. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/protocol/record.h"

namespace smt::runtime::server {

class LaunchLog {
public:
    static constexpr size_t kMost = 256;  // older ones are forgotten

    struct Entry {
        protocol::Op op = protocol::Op::kLaunch;
        uint32_t stream = 0;  // its reference
        uint64_t number = 0;  // on its stream (in_flight.h)
        bool again = false;   // it was executed again after a fault
        std::string record;   // its payload; empty: it is over
    };

    void add(Entry entry) {
        std::lock_guard lock(mutex_);
        entry.again = again_;
        entries_.push_back(std::move(entry));
        if (entries_.size() > kMost) entries_.pop_front();
    }
    void forget() {
        std::lock_guard lock(mutex_);
        entries_.clear();
    }
    // Of the entries that are added from now on.
    void mark(bool again) {
        std::lock_guard lock(mutex_);
        again_ = again;
    }
    std::vector<Entry> all() const {
        std::lock_guard lock(mutex_);
        return {entries_.begin(), entries_.end()};
    }

    // A record that has been executed, or has failed. `status` is fatal: it is executed again by itself.
    // `stream` and `number` are of its last use. `record`: its payload.
    void note(protocol::Op op, bool done, bool fatal, std::pair<uint32_t, uint64_t> use, std::string record);

private:
    mutable std::mutex mutex_;
    std::deque<Entry> entries_;
    bool again_ = false;
};

}  // namespace smt::runtime::server
