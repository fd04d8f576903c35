// Detour: single launches of a stream run on fewer SMs while a policy confines it (schedule/decision.h), also
// kernels with doors and workers. Everything else of the stream stays where it is: each such launch comes
// back at once (side_stream.h), so what is enqueued on the stream behind it waits for it, as do markers,
// reports of stops, and programs that wait.
//
// Graphs take no detour: their kernels run where they were instantiated, whatever stream they are launched
// on.
#pragma once

#include <atomic>
#include <utility>

#include "runtime/dispatch/side_stream.h"

namespace smt::runtime::dispatch {

class Supplies;

// Guarded by its stream's lock, but for supply() and wants(), which any thread may call.
class Detour {
public:
    Detour(SideStream& side, Supplies& supplies) : side_(side), supplies_(supplies) {}

    void confine(int multiprocessors) { wanted_.store(multiprocessors); }  // 0: launches take no detour
    // The number of SMs for which there is no set yet; 0: nothing is missing.
    int wants() const {
        const int wanted = wanted_.load(std::memory_order_relaxed);
        return wanted == supplied_.load(std::memory_order_relaxed) ? 0 : wanted;
    }
    SmSetPointer make(int multiprocessors) const;  // may wait for the device; null: there is no such set
    void supply(int multiprocessors, SmSetPointer set) {
        set_ = std::move(set);
        supplied_.store(multiprocessors);
    }

    // Around a launch. `*where`: the stream to launch on, perhaps `home` itself.
    CUresult leave(CUstream home, CUstream* where) {
        *where = home;
        const int wanted = wanted_.load(std::memory_order_relaxed);
        if (!wanted || wanted != supplied_.load(std::memory_order_relaxed) || !set_) return CUDA_SUCCESS;
        return side_.leave(home, set_.get(), where);
    }
    CUresult come_back(CUstream home, CUstream where) {
        return where == home ? CUDA_SUCCESS : side_.come_back(home, where);
    }

private:
    SideStream& side_;
    Supplies& supplies_;
    std::atomic<int> wanted_{0}, supplied_{0};
    SmSetPointer set_;
};

}  // namespace smt::runtime::dispatch
