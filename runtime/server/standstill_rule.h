// When a server that stands still in the driver is ended (standstill.h): its main thread has not come out of
// a call for longer than the limit of a launch that may be under way, and some time more. Of several such
// launches it is the one that was there first. When a launch began is not known, only since when its stream
// was never seen idle. So where there are launches of other programs, too, one of them may be what the driver
// waits for: then it takes longer, and no tenant is to blame.
//
// Not thread-safe. It has no clock of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/device/device.h"

namespace smt::runtime::server {

class StandstillRule {
public:
    using Duration = std::chrono::nanoseconds;
    static constexpr Duration kLongestStep = std::chrono::seconds(1);  // the process may have been stopped
    // Beyond the limit: for what else may take its time, and where there are launches of other programs,
    // which may be what the driver waits for.
    static constexpr Duration kPatience = std::chrono::seconds(10), kBehindOthers = std::chrono::seconds(60);

    struct Verdict {
        device::WatchedLaunch launch;
        Duration stood{};
        bool sure = false;  // there are launches of no other program
    };
    // Where the main thread is. `number`: not 0, and another one whenever it has come further. `slow`: it may
    // be there for seconds, whatever the driver does.
    static constexpr uint64_t place(uint64_t number, bool slow) { return 2 * number + (slow ? 1 : 0); }
    // `place`: 0: it is in no call that counts.
    // `step`: since the last look. Nothing: it goes on, or is behind no launch that is over its limit.
    std::optional<Verdict> look(uint64_t place, Duration step,
                                const std::function<std::vector<device::WatchedLaunch>()>& launches);

private:
    uint64_t place_ = 0;
    Duration stood_{};
};

}  // namespace smt::runtime::server
