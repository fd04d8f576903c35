// Quiesce windows, for calls that the driver blocks until the context is idle, keeping all other calls out
// meanwhile: loading code, unloading code, and freeing host memory (device/cuda/context_wide.h).
//
// While a Quiesce object lives, preemptible tenants are stopped as if the policy had ordered them to wait:
// launches stop between two blocks, and new launches are held back. So the call waits for a block and not for
// the end of launches. After the last call no launch is let in for kLingers, because a program's start makes
// several such calls in a row, or until the tenant that called launches. Then all streams continue as the
// policy says.
//
// The window is opened for calls of any tenant: a load by the least urgent tenant, too, would keep out
// launches of the most urgent one. A call that frees opens a window only where the policy may stop any tenant
// (quotas and further workers would wait for the driver, and launches for these), or, under priority, where a
// more urgent tenant is present. Work in flight that cannot be stopped is waited for, as without a window,
// and so is a call that already keeps other calls out of the driver.
//
// cuMemFree and unload block until the context is idle. If a preemptible tenant is running, such a call waits
// for the next quiesce window where none may begin yet or little is left of the current one (at most 40 ms
// per call, 200 ms per tenant; not on a device that keeps its own clock). Otherwise the call would wait for
// launches, and the dispatcher, which cannot send further workers meanwhile, for the call. Measured: up to
// 102 ms on an H200.
//
// Windows of several threads and tenants are one window. A window, or several in a row, lasts at most
// kLongest from when a stop was issued on all streams, whatever the calls do (some compile). Then there is
// none for as long. Streams under an experiment (experiments.h) do not take part.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class Dispatcher;
struct Tenant;

// A call within a window.
class Quiesce {
public:
    enum class For { kLoad, kFree };
    // Returns when a stop was issued on all streams, or after a timeout. The caller holds no lock of this
    // folder.
    Quiesce(Dispatcher& dispatcher, const Tenant& tenant, For what = For::kLoad);
    ~Quiesce();
    Quiesce(const Quiesce&) = delete;
    Quiesce& operator=(const Quiesce&) = delete;

private:
    Dispatcher& dispatcher_;
    const uint64_t number_;
};

// When windows begin and end. Touches no stream. Not thread-safe: the dispatcher's lock guards it.
class QuiesceWindows {
public:
    using Duration = schedule::Duration;
    using TimePoint = schedule::TimePoint;
    static constexpr Duration kWindow = std::chrono::milliseconds(20);
    // Longest wait of a tenant for all that it frees: PyTorch unloads hundreds of images.
    static constexpr Duration kMostPerTenant = std::chrono::milliseconds(200);
    // A round trip to the program, and what it does between two calls.
    static constexpr Duration kLingers = std::chrono::microseconds(200);

    // For a call that frees: time until the next window. Zero: one may begin, or enough is left of one.
    Duration until_next(TimePoint now) const;
    uint64_t begin(uint32_t session, TimePoint now);  // a call, and a window if none is under way
    bool waits(uint64_t call) const;                  // until a stop was issued on all streams
    // Waits as long as waits(), without `lock` meanwhile; at most for two windows, if not
    // `as_long_as_it_takes`.
    void await(uint64_t call, std::unique_lock<std::mutex>& lock, bool as_long_as_it_takes);
    bool end(uint64_t call, TimePoint now);  // true: it was the last one
    // The tenant has launched. A window that outlasts its calls serves this launch, so it ends.
    void launched(uint32_t session);

    bool open() const { return !calls_.empty() || lingers_ != TimePoint{}; }
    bool in_force(TimePoint now) const;  // streams stand still
    struct News {
        bool resumes = false;              // streams continue as the policy says
        std::vector<uint32_t> go_on = {};  // sessions with a call that waits no more
    };
    // `all_told`: a stop was issued on all streams.
    News look(TimePoint now, bool all_told);

private:
    struct Call {
        uint64_t number;
        uint32_t session;
        bool waits;
    };
    void allow(TimePoint now);

    std::vector<Call> calls_;
    std::condition_variable goes_on_;  // one of them waits no more
    uint64_t numbers_ = 0;
    bool told_ = false;  // a stop was issued on all streams
    bool over_ = false;  // streams were resumed although there are calls
    TimePoint until_{};
    TimePoint lingers_{};     // end of the time without a call that still belongs to the window
    uint32_t last_ = 0;       // session of the last call
    TimePoint not_before_{};  // earliest begin of the next window
};

}  // namespace smt::runtime::dispatch
