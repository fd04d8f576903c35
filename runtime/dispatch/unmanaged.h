// Unmanaged work: kernels without a managed form, and graphs without doors. They are launched unmodified and
// cannot be stopped once begun. So a policy can only hold them back before (ManagedStream::enter()) and limit
// how many the driver has at a time (UnmanagedWindow).
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/dispatch/sm_sets.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class ManagedStream;

struct UnmanagedLaunch {
    uint64_t key = 0;               // launches with the same key take about equally long
    uint32_t name = 0;              // in the journal
    uint32_t treatment = 0;         // likewise (journal::Entry::value)
    CUfunction function = nullptr;  // a kernel, with its shape; null: a graph
    uint64_t blocks = 0;
    uint32_t threads = 0;       // per block
    uint32_t shared_bytes = 0;  // dynamic
};

// Limit on a tenant's unmanaged work in the driver while the tenant is preemptible. The limit keeps the
// device busy until this process looks again, and no more, because the work cannot be taken back.
//
// The window admits kAtLeast launches of any length, and up to kAtMost if all of them together are expected
// to be over within kTime. How long launches of a key take is learnt from those that ended. A stream without
// a launch in the window gets one in any case, because a kernel on another stream may wait for it. A launch
// older than kStall is not counted any more, because it may wait for something that follows a launch held
// back here.
//
// Any thread. Calls nothing with its lock held.
class UnmanagedWindow {
public:
    using Number = uint64_t;  // of a launch; 0: none

    // 0: the window stayed full for `timeout`.
    Number take(uint64_t stream, uint64_t key, schedule::Duration timeout);
    Number take_now(uint64_t stream, uint64_t key, schedule::TimePoint now);
    void give(Number number, schedule::Duration took);  // took: zero if not known
    schedule::Duration expected(uint64_t key);          // zero: not known

    static constexpr size_t kAtLeast = 2;
    static constexpr size_t kAtMost = 64;
    static constexpr schedule::Duration kTime = std::chrono::microseconds(100);
    static constexpr size_t kMostKnown = 4096;
    static constexpr schedule::Duration kStall = std::chrono::seconds(2);

private:
    struct Flight {
        Number number;
        uint64_t stream;
        uint64_t key;
        schedule::TimePoint issued;
        schedule::Duration expected;
    };
    Number try_take(uint64_t stream, uint64_t key, schedule::TimePoint now);

    std::mutex mutex_;  // guards all
    std::condition_variable given_;
    Number last_ = 0;
    std::vector<Flight> flights_;
    std::unordered_map<uint64_t, schedule::Duration> known_;  // by key
};

// Permission to launch one unmanaged kernel or graph on a stream. enter() gives it, and the same thread uses
// it at once. If the launch fails the pass is dropped, without effect.
class UnmanagedPass {
public:
    UnmanagedPass() = default;
    ~UnmanagedPass() { drop(); }
    UnmanagedPass(const UnmanagedPass&) = delete;
    UnmanagedPass& operator=(const UnmanagedPass&) = delete;

    // The stream to launch on: another one than `home` if the policy confines the launch. Call stay() if the
    // driver does not launch it there.
    CUstream where(CUstream home) const { return away_ ? away_ : home; }
    const SmSet* places() const { return away_ ? places_.get() : nullptr; }  // null: the stream's own
    CUresult stay(CUresult why);
    CUresult launched();  // the driver has accepted it
    void drop();

private:
    friend class ManagedStream;
    ManagedStream* stream_ = nullptr;  // null: the pass is empty
    CUstream away_ = nullptr;
    SmSetPointer places_;
    UnmanagedLaunch launch_;
    UnmanagedWindow::Number number_ = 0;
    bool unasked_ = true;  // no decision was made for it
    uint64_t before_ = 0;  // UnmanagedSide::Flight::before
    bool begins_ = false;  // if that is marked: the GPU had no work of the stream
};

// The unmanaged work of one stream, and where a policy confines it to. Guarded by its stream's lock.
struct UnmanagedSide {
    struct Flight {
        uint64_t marker = 0;  // at which it is over
        uint32_t name = 0;
        UnmanagedWindow::Number number = 0;
        schedule::TimePoint issued{};
        uint64_t key = 0;  // UnmanagedLaunch::key
        uint32_t treatment = 0;
        bool one_wave = false;  // its blocks all run at once; false where that is not asked for
        uint64_t before = 0;    // at which nothing of its stream is in front of it; 0: not marked
    };
    std::deque<Flight> in_flight;  // oldest first
    uint32_t entering = 0;         // threads with a pass; meanwhile the stream is not stopped
    uint32_t wanting = 0;          // threads that wait for a pass
    schedule::TimePoint ended{};   // end of the last one
    int confined_to = 0;           // SMs; 0: all
    schedule::Duration confines_longer{};
    uint64_t last_other = 0;  // the marker behind the last unmanaged or other work

    // What is in front of `marker` is over.
    void over(uint64_t marker, UnmanagedWindow& window, schedule::TimePoint now);
};

}  // namespace smt::runtime::dispatch
