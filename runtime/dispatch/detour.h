// Detour: where a stream's launches run. Single launches run on fewer SMs while a policy confines the stream
// (schedule/decision.h), also kernels with doors and workers. They are enqueued on another stream then, made
// in a green context: the stream is away.
//
// A stream stays away, since each way takes two driver calls and lets the GPU idle between two kernels.
// Consecutive launches cost nothing more. What needs the program's own stream, home, brings it back first:
// everything that is enqueued there, asked or waited for. Markers and reports of stops go to where the
// stream is. An event orders what is behind a way behind all that is in front of it.
//
//     home   copy k1 ------.                             .-> record ...
//     away                  `-> k2 k3 k4 marker k5 ------'
//
// A thread that comes home enqueues something there later, without the lock. Meanwhile launches of other
// threads may leave. So it is remembered until it has enqueued it, and what follows is ordered behind that,
// too.
//
// A launch that the driver refuses away is made at home, and its kernel stays at home from then on: a
// cluster, or a cooperative grid, may need more SMs than there are.
//
// A launch that another caller makes may leave and come back by itself: a cooperative grid that needs more
// SMs than its tenant has. Measured: about 1 us of CPU time on an H200 (docs/results.md#green-and-back).
//
// Graphs take no detour: their kernels run where they were instantiated, whatever stream they are launched
// on.
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/sm_sets.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

class Supplies;

// Guarded by its stream's lock, but for wants() and any_at_home(), which any thread may call.
class Detour {
public:
    // Clusters of so many CTAs fit in the smallest set that a driver makes.
    static constexpr uint32_t kMostCluster = 8;

    // `refused`: is called once for each kernel that the driver refuses away, with its error.
    using Refused = std::function<void(CUresult)>;
    Detour(const DriverApi& driver, CUstream home, Supplies& supplies, Refused refused);
    ~Detour();  // precondition: nothing runs away from home
    Detour(const Detour&) = delete;
    Detour& operator=(const Detour&) = delete;

    // 0: launches take no detour. Those that follow take it at once if the set has been made: what a policy
    // has stopped and confined is launched next by the dispatcher, which makes no set.
    void confine(int multiprocessors);
    // The number of SMs for which this has no set yet; 0: nothing is missing.
    int wants() const {
        const int wanted = wanted_.load(std::memory_order_relaxed);
        return wanted == supplied_.load(std::memory_order_relaxed) ? 0 : wanted;
    }
    void supply(int multiprocessors, SmSetPointer set) {
        set_ = std::move(set);
        supplied_.store(multiprocessors);
    }
    // SMs that launches are confined to now; 0: all.
    unsigned multiprocessors() const { return confines() ? set_->count() : 0; }

    CUstream home() const { return home_; }
    CUstream where() const { return at_; }
    // A launch by `launch(stream)`. `confinable` false: at home.
    template <class Launch>
    CUresult launch(const void* kernel, bool confinable, const Launch& launch) {
        CUstream where = nullptr;
        SMT_TRY(depart(confinable && confines() ? set_.get() : nullptr, kernel, &where));
        CUresult status = launch(where);
        if (status == CUDA_SUCCESS || where == home_) return status;
        const CUresult why = status;
        SMT_TRY(go(home_));
        status = launch(home_);
        if (status == CUDA_SUCCESS) refuse(kernel, why);
        return status;
    }
    // For a launch that another caller makes: `*where` is home if there is no set, or `kernel` was refused.
    CUresult depart(const SmSet* set, const void* kernel, CUstream* where);
    void refuse(const void* kernel, CUresult why) {
        if (refused_.insert(kernel).second) note_refused_(why);
    }

    // A single launch on `*away`, behind all that is at home now, and in front of all that follows. `set`
    // null: on all SMs.
    CUresult leave(const SmSet* set, CUstream* away);
    CUresult come_back(CUstream away) { return order(away, home_); }

    CUresult go_home() { return go(home_); }
    // The same for a thread that enqueues something there then, without the lock.
    CUresult come_home();
    CUresult left_home();  // the thread has enqueued it
    bool any_at_home() const { return at_home_.load(std::memory_order_relaxed) != 0; }
    // What is on `from` is in front of all that follows.
    CUresult follow(CUstream from);

private:
    bool confines() const {
        const int wanted = wanted_.load(std::memory_order_relaxed);
        return wanted && wanted == supplied_.load(std::memory_order_relaxed) && set_;
    }
    CUresult order(CUstream first, CUstream then);
    CUresult go(CUstream to);
    CUresult find(const SmSet* set, CUstream* away);
    bool forget_thread();

    const DriverApi& driver_;
    Supplies& supplies_;
    std::atomic<int> wanted_{0}, supplied_{0};
    SmSetPointer set_;
    const CUstream home_;
    CUstream at_;
    CUevent way_ = nullptr;  // made on demand
    std::map<const SmSet*, CUstream> streams_;
    std::vector<std::thread::id> threads_;  // at home
    std::atomic<size_t> at_home_{0};        // their number
    std::set<const void*> refused_;
    const Refused note_refused_;
};

}  // namespace smt::runtime::dispatch
