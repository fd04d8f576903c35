// The launches that a context-wide call (context_wide.h) would wait for inside the driver, with all other
// calls behind it. While a tenant with a limit for its kernels is present one of them may never end, so such
// a call waits here:
//
//   for those that were there before it;
//   for those of tenants with a limit that came later, so that none is under way when the call enters the
//     driver. Launches may never cease, so these tenants' next launches stand back meanwhile, on their
//     programs' threads (stand_back()). Launches that the dispatcher has already are made all the same. A
//     launch may be what one in front of the call waits for, so each stands back for a bounded time, and the
//     call does not wait for later ones for longer than `patience`.
//
// Any thread. A launch and note() behind it are made with the gate held shared, front() is asked with the
// gate held exclusively.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/device/device.h"

namespace smt::runtime::device {

class LaunchesAhead {
public:
    using Clock = std::chrono::steady_clock;
    explicit LaunchesAhead(const DriverApi& real) : real_(real) {}

    // A call that waits, from the first time that it asks.
    struct Call {
        uint64_t turn = 0;                        // 0: it has not asked yet
        std::optional<Clock::time_point> behind;  // since when only later launches are in front of it
    };
    enum class Front { kNone, kEarlier, kLater };  // what is under way that the call waits for

    void note(CUstream stream, const LaunchOf& launch);  // it was enqueued there
    Front front(Call* call, Clock::duration patience);
    void look();                                   // which of those that no call waits for are over
    void forget();                                 // nothing is noted any more
    std::vector<WatchedLaunch> under_way() const;  // Device::watched_launches()

    // For the thread of a session with a limit, ahead of its launch: waits while a call waits for later
    // launches only (keep_back(): called each time that it has asked), for `longest` at most. False: the
    // session leaves.
    bool stand_back(Clock::duration longest) const;
    void keep_back() { asked_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed); }

private:
    struct Last {
        CUevent behind = nullptr;
        bool limited = false;
    };
    struct Shown {
        CUevent behind = nullptr;
        WatchedLaunch what;
    };
    struct Awaited {
        CUevent behind;  // the last launch that was noted of a stream
        uint64_t turn;   // the first that waits for it
        bool limited;
    };
    bool take(CUevent* event);
    bool is_over(CUevent event);
    void show(CUstream stream, CUevent behind, const LaunchOf& launch);
    bool any_limited();
    bool kept_back() const;

    const DriverApi& real_;
    std::mutex mutex_;                         // guards the members below
    std::unordered_map<CUstream, Last> last_;  // behind the last launch of each stream
    std::vector<Awaited> awaited_;
    std::vector<CUevent> free_;
    uint64_t turns_ = 0;
    std::atomic<Clock::rep> asked_{0};
    mutable std::mutex shown_mutex_;  // a leaf lock, held over no call of the driver
    std::unordered_map<CUstream, Shown> shown_;
};

}  // namespace smt::runtime::device
