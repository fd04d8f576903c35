// The watch of endless kernels: how long the first launch of each stream has run without progress.
//
// The caller looks from time to time and says which streams have a launch that runs. Time counts from one
// look to the next one where the same launch runs without progress at both. A launch that waits, is held
// back, or was stopped is not among those that run, so its time begins anew when it goes on.
//
// Of some launches it is seen that they have begun: they have taken tickets. Of others it is known only that
// nothing of their own stream is in front of them. These may wait for room on the device. So their time
// counts only while no other stream could have what they wait for: none with a more urgent tenant, and none
// whose launch was there before. Of launches that are new at the same look the one that was issued first was.
//
// Not thread-safe. It has no clock of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/dispatch/work.h"

namespace smt::runtime::server {

class KernelWatch {
public:
    // Longest time that counts from one look to the next: the process may have been stopped meanwhile.
    static constexpr schedule::Duration kLongestStep = std::chrono::seconds(1);

    struct Seat {
        uint64_t stream = 0;
        uint32_t session = 0;
        int priority = 0;            // of its tenant; larger is more urgent
        schedule::Duration limit{};  // zero: none
        dispatch::Running running;
    };
    struct Overdue {
        Seat seat;
        schedule::Duration lasted{};  // without progress
    };
    // `seats`: each stream once. Nothing: no launch is over its limit; else the one that was there first.
    std::optional<Overdue> look(schedule::TimePoint now, const std::vector<Seat>& seats);
    // At the last look: the longest time without progress of a launch that has a limit.
    schedule::Duration longest() const { return longest_; }

private:
    struct Seen {
        uint64_t launch = 0, progress = 0;
        // Of arrival, among all launches: at which look, and when it was issued.
        std::pair<uint64_t, schedule::TimePoint> order{};
        schedule::Duration lasted{};
    };
    bool could_wait(const Seat& seat, const std::vector<Seat>& seats) const;

    std::unordered_map<uint64_t, Seen> seen_;  // by stream
    uint64_t looks_ = 0;
    std::optional<schedule::TimePoint> last_look_;
    schedule::Duration longest_{};
};

}  // namespace smt::runtime::server
