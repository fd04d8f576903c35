// What a session has launched lately, as its records, so that after a fault the launches that were under way
// can be executed again (reissue.cpp). Kept where a takeover is expected only.
//
// In the log are launches and records of events, in the order in which they were made, and copies to the host
// that are over. Whatever else may change memory, or the order of streams, empties it: what came before that
// is not executed again. So does the end of a capture, whose launches were none. What only asks leaves it
// alone. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
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

    // Of the entries that are noted from now on.
    void mark(bool again) {
        std::lock_guard lock(mutex_);
        again_ = again;
    }
    std::vector<Entry> all() const;

    // A record that has been executed, or has failed. `fatal`: it is executed again by itself.
    // `stream` and `number` are of its last use. `record`: its payload.
    void note(protocol::Op op, bool done, bool fatal, std::pair<uint32_t, uint64_t> use,
              std::string_view record);

private:
    void add(protocol::Op op, std::pair<uint32_t, uint64_t> use, std::string_view record);
    void forget();

    mutable std::mutex mutex_;
    std::vector<Entry> ring_;  // each launch comes by here: a place is used again with the memory that it has
    size_t first_ = 0, count_ = 0;
    bool again_ = false;
};

}  // namespace smt::runtime::server
