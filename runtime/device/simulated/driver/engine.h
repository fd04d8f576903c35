// The device's clock: one thread that starts the streams' work, runs the machine and wakes waiting threads.
//
// Virtual time stands still while a program may still say what it wants done at this moment. The clock
// runs when every session
//
//   waits in a call for work of the device, or
//   has neither submitted anything nor been answered for a grace period of real time (a program that
//   polls, or computes for long, must not stop all others for ever), or
//   is leaving and still has work to finish.
//
// Work that is ready at one moment is started in the order of tenant name, session, lane and sequence,
// and the first wait that comes true stops the clock again. So two runs of the same programs give the
// same virtual times, whatever the host does meanwhile, as long as a program computes for less than the
// grace period between its calls. With `sessions` the clock does not start before so many are there.
//
// A wait for a value in memory that the program writes (a host function's word) holds the clock as the
// program itself does, for the same grace.
//
// Locks: step_ (no mapping changes while work touches memory), then hosted::world().
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/hosted/backend.h"
#include "runtime/device/simulated/driver/ordered_journal.h"
#include "runtime/device/simulated/driver/tenant.h"
#include "runtime/device/simulated/machine/machine.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::device::simulated {

struct SimulatedStream final : hosted::Stream {
    std::shared_ptr<Tenant> tenant;
    std::deque<Turn> turns;  // of `queue`
    bool under_way = false;  // the front was started
};

class Engine {
public:
    struct Settings {
        MachineConfig machine;
        std::chrono::milliseconds grace{100};
        uint32_t sessions = 0;
        bool loads_wait = false;
        bool one_context = false;  // a fault ends the work of all sessions
    };
    // Makes a grid of a launch; `over` is called on the engine's thread when it is.
    using MakeGrid = std::function<std::shared_ptr<Grid>(const hosted::Launch&, std::shared_ptr<Tenant>,
                                                         std::function<void(const GridResult&)> over)>;
    using StreamPointer = std::shared_ptr<SimulatedStream>;

    Engine(const Settings& settings, MakeGrid make_grid);
    ~Engine();
    void stop();  // for good; before what grids need goes away
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    Machine& machine() { return machine_; }  // the engine's thread only, but for its config
    uint64_t now_ns() const { return now_ns_.load(std::memory_order_acquire); }
    OrderedJournal& journal() { return journal_; }

    // Sessions.
    void arrived(const std::shared_ptr<Tenant>& tenant);
    void leaving(Tenant& tenant);
    void left(const std::shared_ptr<Tenant>& tenant);
    void touch(Tenant& tenant);                     // a sign of life
    void end_work(Tenant& tenant, CUresult error);  // as after a fault of it

    // With hosted::world().
    void opened(const std::shared_ptr<SimulatedStream>& stream);  // the calling thread's tenant's,
    void made_for(uint32_t tenant, CUstream stream);              // or that tenant's
    void submitted(SimulatedStream& stream);
    void await(hosted::Lock& lock, const std::function<bool()>& done);

    // The calling thread waits for other threads, or no longer: like a wait for work, it lets the clock run.
    void waits_for_others(bool waits);
    void let_go(uint32_t tenant);  // it is about to be told that they have done something

    void quietly(const std::function<void()>& change);

    // The calling thread loads code. Where that waits (Settings), what is submitted from now on begins when
    // all earlier work is over; a thread that loads a module waits for that.
    void begin_load(bool module);

    // A fault has lost the one context (Settings): no work is carried out any more, and waiting threads
    // go on.
    void lose(CUresult fault);
    CUresult lost() const { return static_cast<CUresult>(lost_.load()); }

    // One thread looks at what the device does and decides what it does next. While it is at work the clock
    // stands; it rests until a moment of this clock, until disturb(), or until the engine stops. `due`: the
    // clock goes there even when there is nothing else to do.
    void rest(std::unique_lock<std::mutex>& lock, uint64_t until_ns, bool due);
    void disturb();

private:
    struct Looker {
        bool there = false;
        bool resting = false;
        bool due = false;
        int waiting = 0;  // it waits for work, as tenants do
        Cycle until = kNever;
        RealTime::time_point active{};
        std::condition_variable rested;
    };
    struct Waiter {
        const std::function<bool()>* done;
        Tenant* tenant;
        bool looker;
        bool satisfied;
    };

    void run();
    bool clock_may_run();
    bool holds(const Tenant& tenant) const;
    bool start_ready(hosted::Lock& lock);
    uint64_t oldest_period() const;  // of which something is not over
    void start(hosted::Lock& lock, const StreamPointer& stream);
    void start_kernel(const StreamPointer& stream, const hosted::Node& node);
    void kernel_over(const StreamPointer& stream);
    void cancel_lost();
    void start_copy(const StreamPointer& stream, const std::shared_ptr<hosted::Node>& node);
    void start_host_function(const StreamPointer& stream, const std::shared_ptr<hosted::Node>& node);
    void carry_out(hosted::Lock& lock, const StreamPointer& stream, const hosted::Node& node);
    void finish(SimulatedStream& stream);
    bool finish_completed();
    void tell_waiters();
    void advance(hosted::Lock& lock);
    void rest(hosted::Lock& lock);
    void let_look();  // its moment has come
    bool looks_next() const;
    bool is_lost(const SimulatedStream& stream) const;
    bool polls() const;  // a stream waits for memory that others write

    const Settings settings_;
    const MakeGrid make_grid_;
    Machine machine_;
    OrderedJournal journal_;
    std::atomic<uint64_t> now_ns_{0};
    std::atomic<int> lost_{CUDA_SUCCESS};
    std::mutex step_;

    // Guarded by hosted::world().
    std::condition_variable wake_;
    bool stopping_ = false;
    uint32_t ever_arrived_ = 0;
    bool ended_ = false;   // a tenant's work, by end_work()
    uint64_t period_ = 0;  // loads so far
    std::vector<std::shared_ptr<Tenant>> tenants_;
    std::vector<StreamPointer> streams_;
    std::vector<Waiter*> waiters_;
    Looker looker_;
    std::vector<StreamPointer> done_by_others_;
    std::atomic<bool> attention_{false};  // something was said since the clock was let run

    // The engine's thread only.
    std::vector<StreamPointer> done_by_machine_;
    std::vector<std::pair<StreamPointer, std::shared_ptr<Grid>>> grids_;  // launched and not over
    Thread thread_;
};

}  // namespace smt::runtime::device::simulated
