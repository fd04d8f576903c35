// Unmanaged work: kernels without a managed form, and graphs. They go as they are and cannot be stopped once they
// have begun, so what a policy can do is hold them back before (ManagedStream::enter()) and see to it that few are
// in the driver's hands meanwhile (UnmanagedWindow).
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/dispatch/sm_sets.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class ManagedStream;

struct UnmanagedLaunch {
    uint64_t key = 0;    // launches with one key take about as long
    uint32_t name = 0;   // in the journal
    CUfunction function = nullptr;   // a kernel, with its shape; null: a graph
    uint64_t blocks = 0;
    uint32_t threads = 0;            // of a block
    uint32_t shared_bytes = 0;       // dynamic
};

// How much of a tenant's unmanaged work the driver has at a time, while somebody may want it held back: enough to
// keep the device busy until this process looks again, for it cannot be taken back.
//
// kAtLeast launches, whatever they are; more where all of them together are expected to be over within kTime.
// How long launches of a key take is learnt from those that ended. A stream that has none gets one in any case, as it
// may be what a kernel on another stream waits for; and what has been there for longer than kStall is not counted any
// more, as it may wait for something that stands behind a launch which waits here.
//
// Any thread; nothing is called with its lock held.
class UnmanagedWindow {
public:
    using Number = uint64_t;   // of a launch; 0: none

    // 0: it is full, and was for so long.
    Number take(uint64_t stream, uint64_t key, schedule::Duration timeout);
    Number take_now(uint64_t stream, uint64_t key, schedule::TimePoint now);
    void give(Number number, schedule::Duration took);   // took: zero if it is not known
    schedule::Duration expected(uint64_t key);           // zero: nothing is known

    static constexpr size_t kAtLeast = 2;
    static constexpr size_t kAtMost = 64;
    static constexpr schedule::Duration kTime = std::chrono::microseconds(100);
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

    std::mutex mutex_;   // all
    std::condition_variable given_;
    Number last_ = 0;
    std::vector<Flight> flights_;
    std::unordered_map<uint64_t, schedule::Duration> known_;   // by key
};

// Leave to launch one unmanaged thing on a stream: got from enter(), used by the same thread at once. If the launch
// fails it is dropped, and nothing has happened.
class UnmanagedPass {
public:
    UnmanagedPass() = default;
    ~UnmanagedPass() { drop(); }
    UnmanagedPass(const UnmanagedPass&) = delete;
    UnmanagedPass& operator=(const UnmanagedPass&) = delete;

    // Where to launch: on another stream than `home` if the policy confines it; stay() if it cannot run there.
    CUstream where(CUstream home) const { return away_ ? away_ : home; }
    const SmSet* places() const { return away_ ? places_.get() : nullptr; }   // null: where the stream runs
    void stay() { away_ = nullptr; }
    CUresult launched();   // the driver has it
    void drop();

private:
    friend class ManagedStream;
    ManagedStream* stream_ = nullptr;   // null: nobody asks
    CUstream away_ = nullptr;
    SmSetPointer places_;
    UnmanagedLaunch launch_;
    UnmanagedWindow::Number number_ = 0;
};

}  // namespace smt::runtime::dispatch
