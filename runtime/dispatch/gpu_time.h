// GPU time received: what a tenant has had of the GPU, in time that its work takes alone.
//
// Time on the GPU says little where tenants overlap: a kernel beside another one may take twice as long, or
// no longer at all. So completed work counts with the time that it takes alone, which is progress. That time
// is learnt for each kernel and shape of launch whenever no other tenant has work on the GPU. A policy that
// holds tenants back makes such times; others come when a program starts first, or others wait for their
// hosts. A launch that was never seen alone counts with an equal part of the time: half of it beside one
// other tenant. A part of a launch counts in proportion to its blocks. One shape says nothing about another:
// a grid of one block and one of ten take equally long.
//
// What is learnt may be off for all kernels of a tenant: it is learnt in short times alone, too, behind a
// start. So it is corrected by what launches took in long times alone, in which the stream was never empty
// and no other tenant had work, by what was expected of them (Correction). Then progress beside others is in
// seconds alone by construction.
//
// A tenant's streams divide its time equally among them while they overlap, so a tenant that is alone
// receives no more than the time that passes.
//
// Example: kernel a takes 100 us alone. Beside b, of another tenant and never seen alone, both are at work
// for 180 us. a's tenant receives 100 us, b's receives 90.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/dispatch/last_durations.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

// The tenants with work on the GPU, and their parts of the time so far. Any thread.
class Company {
public:
    using TimePoint = schedule::TimePoint;

    // Of one tenant. Guarded by the lock of its Company; address is constant while it has streams at work.
    struct Part {
        int streams = 0;      // at work
        double own = 0;       // ns at work, divided by its streams at work
        double shared = 0;    // likewise, divided by the tenants at work, too
        TimePoint crowded{};  // until when several of its streams were at work
    };
    // A Part at a time.
    struct Sums {
        double own = 0, shared = 0;
        TimePoint together{};  // until when another tenant was at work, too
    };

    void begins(Part& part, TimePoint now);  // one of its streams is at work
    void ends(Part& part, TimePoint now);
    Sums sums(const Part& part, TimePoint now);
    // Whether one stream of this tenant was at work since then, and nothing else.
    bool by_itself(const Part& part, TimePoint since, TimePoint now);

private:
    void advance(TimePoint now);

    std::mutex mutex_;  // guards all
    std::vector<Part*> working_;
    TimePoint seen_{};
    TimePoint together_{};
};

// What a launch of one shape takes. Any thread.
class LaunchTime {
public:
    // Of so many of its blocks, in ns. 0: not known.
    double of(double blocks) const {
        return static_cast<double>(block_ps_.load(std::memory_order_relaxed)) * blocks / kPicoseconds;
    }
    uint64_t block_ps() const { return block_ps_.load(std::memory_order_relaxed); }
    void set_block_ps(uint64_t ps) { block_ps_.store(ps, std::memory_order_relaxed); }
    void learn(double blocks, double took_ns);
    void forget() { set_block_ps(0); }

private:
    static constexpr double kPicoseconds = 1000;
    std::atomic<uint64_t> block_ps_{0};
};

// A kernel's, by the shape of its launches, and the last durations by launch key. Any thread.
class LaunchTimes {
public:
    // Valid as long as this is. Beyond kMost shapes, those of a like number of blocks share one.
    LaunchTime& of(uint64_t blocks, uint32_t threads);
    LastDurations& last() { return last_; }
    const LastDurations& last() const { return last_; }
    void forget();

    static constexpr size_t kMost = 256;

private:
    std::mutex mutex_;  // guards the map, not what is in it
    std::unordered_map<uint64_t, LaunchTime> by_shape_;
    LastDurations last_;
};

// Of a tenant: how many times as long its launches take alone as was learnt, all together. Any thread.
class Correction {
public:
    // So much is measured at a time: some hundred launches, or a part of a step of a training.
    static constexpr double kWindow = 10e6;  // ns
    static constexpr double kLeast = 0.8, kMost = 1.25, kLastWeight = 0.25;

    double factor() const { return factor_.load(std::memory_order_relaxed); }
    uint32_t windows() const { return windows_.load(std::memory_order_relaxed); }  // measured so far
    void measured(double expected, double took);

private:
    std::mutex mutex_;  // guards changes
    std::atomic<double> factor_{1};
    std::atomic<uint32_t> windows_{0};
};

// A tenant's. Any thread.
struct Received {
    Company::Part part;
    std::atomic<int64_t> ns{0};          // for what is complete, of all its streams
    std::atomic<int64_t> guessed_ns{0};  // of that, by equal parts of the time
    Correction correction;
};

// Of one stream. Guarded by the stream's lock.
class GpuTime {
public:
    using TimePoint = schedule::TimePoint;

    GpuTime(Company& company, Received& tenant) : company_(company), tenant_(tenant) {}
    ~GpuTime() { settle(false, begun_, false); }
    GpuTime(const GpuTime&) = delete;
    GpuTime& operator=(const GpuTime&) = delete;

    // What tells launches of one shape apart. `last` null: nothing does.
    struct Alike {
        LastDurations* last = nullptr;
        uint64_t key = 0;
        LastDurations::Launch launch = {};
    };
    // Work that is complete since the last settle(). `whole`: it was not stopped within.
    void over(LaunchTime& kernel, uint64_t blocks, bool whole) { over(kernel, blocks, whole, {}); }
    void over(LaunchTime& kernel, uint64_t blocks, bool whole, const Alike& alike);
    void over_unmanaged(uint64_t key);  // UnmanagedLaunch::key
    double expected_unmanaged(uint64_t key) { return unmanaged_[key].of(1); }
    // Accounts for that. `at_work`: the GPU has work of the stream. `learns`: the ends of work are looked for
    // all the time, so that it did not end long ago.
    void settle(bool at_work, TimePoint now, bool learns = true);
    bool needs_settling(bool at_work) const { return !over_.empty() || at_work != at_work_; }
    // For what is under way: `next`, null: not known, of so many blocks.
    schedule::Duration receiving(const LaunchTime* next, uint64_t blocks, TimePoint now);

private:
    struct Item {
        LaunchTime* kernel;
        double blocks;
        bool whole;
        Alike alike;

        double expected() const;  // ns, alone; 0: not known
        void learn(double took) const;
    };
    void receive_beside_others(double shared);
    void learn(double took);
    void compare(double took);

    Company& company_;
    Received& tenant_;
    std::unordered_map<uint64_t, LaunchTime> unmanaged_;  // by key; bounded
    std::vector<Item> over_;
    bool at_work_ = false;
    bool steady_ = false;  // it had work and no company since work was last over
    double compared_ = 0,
           expected_of_ = 0;  // of the window under way: what launches took, and were expected to
    Company::Sums since_;     // when work began, or was last over
    TimePoint begun_{};       // and when that was
};

}  // namespace smt::runtime::dispatch
