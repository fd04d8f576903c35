// ManagedStream: a tenant's stream that managed kernels are launched on. Its launches can be stopped and
// resumed, and the program does not notice.
//
//   pass-through  Launches go to the driver at once, back to back. They share one control block, in which
//                 each has its own tickets, so none waits for another (smt_worker.h: pass-through mode).
//                 Launches beyond the launch-ahead limit are kept here and follow as the GPU progresses
//                 (launch_ahead.h).
//   stopping      The stop was written. Workers leave. Later launches are kept here.
//   stopped       The GPU has no work of this stream. Launches wait here, the first one perhaps half done,
//                 until the dispatcher returns to pass-through mode or runs one of them with quotas (quota
//                 mode).
//
// What cannot look at a control block (copies, events, other kernels) must not overtake a launch that may be
// stopped. So guard() is called before such an operation is enqueued. If the tenant is preemptible
// (Tenant::preemptible), guard() waits until the launches are over, or, if they have doors, until they are
// expected to be over soon. Otherwise it lets the operation go ahead. What is in flight then cannot be
// stopped any more, and a stop ends after it. Nothing ever waits on the GPU: a waiting stream would hold up
// other streams.
//
// No longer than they progress, though: they may wait for what the program does next (standstill.h).
//
// Before an unmanaged launch enter() is called instead. If the tenant is preemptible it, too, waits while the
// stream is stopped or the tenant's window is full. It waits in the program's thread, so order and errors are
// the driver's own. A stop with only unmanaged work in flight is over when that work has ended.
//
// Nothing of a stream that waits for a value can run, nor of one that waits by an event. So while it does, it
// has no work for a policy: not what is behind the wait, be it with the driver or kept here. What is in front
// of the wait counts until it is over. The GPU writes a word when it is past the wait. A graph has no work
// while one of its nodes waits (wait_list.h). One exception: a thread that waits for its turn to launch is
// counted, and gets it, because it may be the thread that writes the value.
//
// A kernel with a door has launches like a managed kernel's, but no quotas: the door can only stop them. So
// does a graph whose kernels have doors.
//
// program_side.cpp has what the program's threads call, unmanaged_side.cpp what they do around unmanaged
// launches, progress.cpp what policies see, watched.cpp what the watch of endless kernels sees and a process
// that takes over gets, and managed_stream.cpp the rest.
//
// Any thread. mutex_ is held over driver calls that do not wait, never over a wait.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/held_up.h"
#include "runtime/dispatch/account.h"
#include "runtime/dispatch/detour.h"
#include "runtime/dispatch/launch_forms.h"
#include "runtime/dispatch/launch_queue.h"
#include "runtime/dispatch/preemptor.h"
#include "runtime/dispatch/progress_samples.h"
#include "runtime/dispatch/standstill.h"
#include "runtime/dispatch/unmanaged.h"
#include "runtime/dispatch/wait_list.h"
#include "runtime/dispatch/waiters.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::dispatch {

class Dispatcher;
struct Tenant;

class ManagedStream {
public:
    ManagedStream(Dispatcher& dispatcher, std::shared_ptr<Tenant> tenant, CUstream stream);
    ~ManagedStream();  // precondition: settled, or its client is gone and its stream is idle
    ManagedStream(const ManagedStream&) = delete;
    ManagedStream& operator=(const ManagedStream&) = delete;

    CUresult open();

    // For the program's threads. NOT_SUPPORTED: the managed form does not fit where the kernel itself might.
    // Nothing was done then.
    CUresult launch(Work&& work);
    CUresult guard();  // before anything else is enqueued on the stream, or waited for
    // The last launch that is not known to be over can be stopped by a door: a launch with a door behind it
    // need not wait, as guard() does.
    bool ends_with_door();
    // Before an unmanaged launch.
    CUresult enter(const UnmanagedLaunch& launch, UnmanagedPass* pass);
    // issued(): how many launches the driver has. over(): the first `issued` of them are over, for a caller
    // that has waited for the driver's stream.
    uint32_t issued();
    void over(uint32_t issued);
    void forget_code();  // precondition: no launch is unfinished. Launched kernels may be unloaded
    bool held_back();    // launches are unfinished that the driver does not know of
    // For a single launch that stands in the stream's order and runs elsewhere (detour.h).
    CUresult leave(const SmSet* set, CUstream* away);
    CUresult come_back(CUstream away);
    // Before something is enqueued on the stream that need not wait for launches, and after anything is.
    CUresult come_home();
    void left_home();
    // Something else was enqueued that a policy should know about. `kernel`: a launch, by its name in the
    // journal; 0: none.
    CUresult note_other(uint32_t kernel = 0);
    // What `enqueue` enqueues is a wait, or a graph with nodes that wait (wait_list.h). Precondition:
    // guard(). May block as `enqueue` does.
    CUresult enqueue_wait(const std::function<CUresult()>& enqueue, WaitWords nodes = {});
    WaitWord pending_wait();  // waits while the last of its waits is not over
    // The client is gone: running launches are stopped, waiting ones dropped. Called again until the stream
    // is idle. `kept`: gets the launches that waited here, if the driver had none; without it they are
    // dropped.
    void abandon(LaunchQueue::Works* kept = nullptr);
    // Another process is to go on with the stream, and the program's threads make no further launch: what can
    // be stopped is. True: the driver has nothing of it any more, and `kept` the launches that are left,
    // once. False: ask again.
    bool set_aside(LaunchQueue::Works* kept);
    // The first launch, if it runs as far as is known. The progress is that of the last call or later.
    std::optional<Running> running();
    // Launches or waits of it are known here. Else the driver may have work of it from before the watch
    // began.
    bool knows_work();
    // The kernels of launches of which no block is under way, as they wait here: a name for each.
    std::vector<uint32_t> held_launches();

    // For the dispatcher.
    uint64_t id() const { return id_; }
    schedule::TimePoint now() const;  // by the dispatcher's clock
    const Tenant& tenant() const { return *tenant_; }
    // The first unfinished launch. False: nothing is left to do, or nothing can run.
    bool describe(schedule::Kernel* kernel);
    // It has begun to work in a solo session (solo.h), and no decision has seen that. take_unheard(): a
    // decision sees it now; what its work could do.
    bool unheard() const { return unheard_.load(std::memory_order_relaxed) != kHeard; }
    std::optional<Abilities> take_unheard();
    void sample();  // asks for the progress from time to time; describe() reports it
    bool passes_through();
    // How far away the end of what the GPU has is, before or behind now, where launches are kept here.
    std::optional<schedule::Duration> keeps_back();
    bool ready();  // halt() and change() take effect on the run under way
    void confine(const schedule::Confinement& confinement);  // launches from now on
    void waits_because(const std::string& reason);           // for `smt status`; empty: it does not wait
    void look_up();              // waiting threads look whether the tenant is suspended
    uint32_t first_under_way();  // the journal's name of what the GPU has of it; 0: nothing that is known
    void mark_what_is_there();   // enqueues a marker, so that its end will be seen
    bool stop();                 // false: what is in flight cannot be stopped yet; ask again
    CUresult pass_through();     // from stopped: all launches resume
    // From stopped: the first launch runs with these quotas, at most `blocks` of its blocks (0: all).
    CUresult run(const QuotaTable& quotas, uint64_t blocks);
    // While it runs. No effect once the run is halted.
    CUresult change(const QuotaTable& quotas);
    CUresult grow(uint32_t workers);  // this many more
    CUresult fill_up();               // as many more as find a place
    CUresult halt();                  // the run ends soon
    uint64_t residents();             // workers of the quota-mode run that have a place
    bool learning();                  // read_mappings() is worth a call
    void read_mappings();             // of launches in pass-through mode: learns from them, and journals them
    // The first unfinished launch. False: there is none.
    struct Front {
        std::shared_ptr<profiles::KnownKernel> known;
        profiles::Shape shape;
        uint64_t left = 0;      // blocks
        uint64_t block_ns = 0;  // 0: not known
        // Most blocks of a slice such that all its workers have room in the mapping ring.
        uint64_t most_timed = 0;
        int ctas_per_sm = 0;  // that fit
    };
    bool front(Front* front);
    bool poll();                  // looks what the GPU has done; true: the state has changed
    void write_times();           // GPU times of kernels that have changed, to the journal
    Placement::Sums placement();  // of its quota-mode runs, where workers write mappings

private:
    friend class UnmanagedPass;
    using State = Preemptor::State;
    using Event = Preemptor::Event;
    using Lock = std::unique_lock<std::mutex>;
    // Never reported, because the client is gone. Not an error that would end the context.
    static constexpr CUresult kClientGone = CUDA_ERROR_DEINITIALIZED;

    // With mutex_ held, as all below.
    CUresult issue(Work&& work);
    bool will_endure(const Work& work);
    CUresult mark(CUresult (Markers::*how)() = &Markers::mark);  // by write where it is polled for
    CUresult mark_before(uint64_t* before);
    void look_at_tickets();
    CUresult get_ready();
    void prune();
    void mark_tail();    // if no launch follows, and the tenant is preemptible or a preemptor
    void issue_first();  // of those that wait
    void top_up();       // hands launches to the driver up to the launch-ahead limit
    void go_on();        // prune() and top_up()
    bool over_launch_ahead();
    bool gone() const { return client_ == Client::kGone; }
    bool under_way() const {
        return !queue_.in_flight().empty() || !unmanaged_.in_flight.empty() || unmanaged_.entering != 0;
    }
    bool runs_with_quotas() const;
    bool stops_soon() const;  // the tenant is preemptible, and its stops are to be short
    bool stop_in_flight();
    CUresult halt_run();
    bool stop_what_runs();  // true: a stop was written for it now
    CUresult settle();
    void settle_account();
    // Of a service: whether the stream has work, as describe() says it. `reached`: the last marker known.
    void note_begin();
    void note_work(uint64_t reached);
    void forget(size_t over);  // so many of the launches in flight
    CUresult come_to_rest();
    void learn_now();  // reads mappings, unless a stop or a run is under way

    // For program_side.cpp and unmanaged_side.cpp.
    bool begins_unasked() const;  // it may begin to work without a decision
    void begin_unasked(const Abilities& can);
    CUresult entered(const UnmanagedPass& pass);
    void withdrawn(UnmanagedWindow::Number number);
    void supply_detour();
    int confined(const UnmanagedLaunch& launch);
    CUresult go_away(int multiprocessors, UnmanagedPass* pass);
    CUresult stays(const UnmanagedLaunch& launch, CUresult why);
    CUresult await_turn(Lock& lock, UnmanagedPass* pass);
    UnmanagedWindow::Number take_number(uint64_t key);  // 0: none was free in time
    CUresult await_room(Lock& lock);
    void await_launch_ahead(Lock& lock);
    CUresult clear_way(Lock& lock);
    bool await_soon(Lock& lock);
    CUresult wait_in_flight(Lock& lock, uint64_t number, Standstill* still);
    CUresult poll_home();  // without mutex_, as the next one
    CUresult wait_at_home();
    bool stands_still(Standstill* still);
    bool resume_behind_wait();
    void hand_over(uint64_t number);
    void let_pass();
    CUresult await_change(Lock& lock);
    CUresult sleep(Lock& lock);
    void tell_changed();  // wakes the threads that wait for it, and announces that to the device
    bool looks_on() const;
    void say_held_up(std::optional<device::HeldUp>* held_up) const;

    // For progress.cpp.
    bool at_wait();  // a wait holds it up, with nothing unfinished in front
    std::optional<Running> what_runs();
    void end_waits();
    void describe(const Work& work, schedule::Kernel* kernel) const;
    void estimate(const Work& work, schedule::Kernel* kernel) const;
    uint32_t usual_ctas(const Work& work) const;

    enum class Client { kHere, kMoves, kGone };  // kMoves: another process launches what waits here

    Dispatcher& dispatcher_;
    const std::shared_ptr<Tenant> tenant_;
    const uint64_t id_;
    Detour detour_;
    std::mutex enqueuing_;  // held while a wait is enqueued; taken before mutex_
    enum : uint8_t { kHeard = 0, kBegan = 1, kStops = 2, kKeepsQuotas = 4 };
    std::atomic<uint8_t> unheard_{kHeard};

    std::mutex mutex_;  // guards the rest
    WaitList waits_;    // not known to be over
    Waiters waiters_;
    Preemptor preemptor_;
    LaunchQueue queue_;
    Markers markers_;
    Learner learner_;
    LaunchForms forms_;
    UnmanagedSide unmanaged_;
    Account account_;
    ProgressSamples samples_;
    Client client_ = Client::kHere;
    // Error of a launch that had to wait; the program's next call returns it.
    CUresult failed_ = CUDA_SUCCESS;
};

}  // namespace smt::runtime::dispatch
