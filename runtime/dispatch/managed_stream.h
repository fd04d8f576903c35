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
// (Tenant::preemptible), guard() waits until the launches are over. Otherwise it lets the operation go ahead,
// and records that what is in flight cannot be stopped any more. Nothing ever waits on the GPU: a waiting
// stream would hold up other streams.
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
// does a graph whose kernels have doors (graph_doors.h).
//
// program_side.cpp has what the program's threads call, pass_through.cpp pass-through mode, doors.cpp
// launches of kernels with doors, progress.cpp and mappings.cpp what policies learn, and managed_stream.cpp
// the rest.
//
// Any thread. mutex_ is held over driver calls that do not wait, never over a wait.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/device/held_up.h"
#include "runtime/dispatch/control_block.h"
#include "runtime/dispatch/launch_ahead.h"
#include "runtime/dispatch/placement.h"
#include "runtime/dispatch/side_stream.h"
#include "runtime/dispatch/stream_words.h"
#include "runtime/dispatch/unmanaged.h"
#include "runtime/dispatch/wait_list.h"
#include "runtime/dispatch/work.h"
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
    // Before an unmanaged launch.
    CUresult enter(const UnmanagedLaunch& launch, UnmanagedPass* pass);
    // issued(): how many launches the driver has. over(): the first `issued` of them are over, for a caller
    // that has waited for the driver's stream.
    uint32_t issued();
    void over(uint32_t issued);
    void forget_code();  // precondition: no launch is unfinished. Launched kernels may be unloaded
    bool held_back();    // launches are unfinished that the driver does not know of
    // For a single launch that stands in the stream's order and runs elsewhere (side_stream.h).
    CUresult leave(const SmSet* set, CUstream* away) { return side_stream_.leave(stream_, set, away); }
    CUresult come_back(CUstream away) { return side_stream_.come_back(stream_, away); }
    CUresult note_other();  // something else was enqueued that a policy should know about
    // What `enqueue` enqueues is a wait, or a graph with nodes that wait (wait_list.h). Precondition:
    // guard(). May block as `enqueue` does.
    CUresult enqueue_wait(const std::function<CUresult()>& enqueue, WaitWords nodes = {});
    WaitWord pending_wait();  // waits while the last of its waits is not over
    // The client is gone: running launches are stopped, waiting ones dropped. Called again until the stream
    // is idle.
    void abandon();

    // For the dispatcher.
    uint64_t id() const { return id_; }
    schedule::TimePoint now() const;  // by the dispatcher's clock
    const Tenant& tenant() const { return *tenant_; }
    // The first unfinished launch. False: nothing is left to do, or nothing can run.
    bool describe(schedule::Kernel* kernel);
    void sample();  // asks for the progress from time to time; describe() reports it
    bool passes_through();
    bool keeps_back();  // poll() hands over launches that are kept here
    bool ready();       // halt() and change() take effect on the run under way
    void confine(const schedule::Confinement& confinement);  // unmanaged launches from now on
    void waits_because(const std::string& reason);           // for `smt status`; empty: it does not wait
    void mark_what_is_there();  // enqueues a marker, so that its end will be seen
    bool stop();                // false: what is in flight cannot be stopped yet; ask again
    CUresult pass_through();    // from stopped: all launches resume
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
    Placement::Sums placement();  // of its quota-mode runs, where workers write mappings

private:
    friend class UnmanagedPass;
    CUresult entered(const UnmanagedPass& pass);
    void withdrawn(UnmanagedWindow::Number number);

    static constexpr uint32_t kLaunchIds = 1u << 30;  // smt::Launch::id

    // kRunning: stopped, except for waiting_.front(), which runs in quota mode.
    enum class State { kPassThrough, kStopping, kStopped, kRunning };
    using Lock = std::unique_lock<std::mutex>;

    CUresult issue(Work&& work);
    CUresult issue_workers(Work& work);
    static bool suits_door(const Work& work);
    void note_launched(Work& work);
    CUresult issue_door(Work& work, uint64_t blocks);
    CUresult issue_graph(Work& work);
    CUresult stop_doors();
    CUresult report_doors();
    CUresult run_door(Work& work, uint64_t blocks);
    CUresult settle_graph();
    Work& under_way_first() { return state_ == State::kRunning ? waiting_.front() : in_flight_.front(); }
    bool may_follow(const Work& work) const;  // what is in flight
    bool in_flight_with_door() const {
        return !in_flight_.empty() && in_flight_.front().function->has_door();
    }
    bool runs_with_quotas() const {
        return state_ == State::kRunning && !halted_ && !waiting_.empty() &&
               waiting_.front().function->persistent();
    }
    void settle(Work& work, uint32_t run, uint64_t first);
    void settle_run(uint32_t run);        // of quota mode
    void settle_in_flight(uint32_t run);  // what is left waits
    CUresult prepare(Work& work, uint64_t blocks, smt::Launch* launch, uint32_t* workers);
    uint32_t ticket_blocks(const Work& work, uint64_t each) const;
    uint64_t expected_block_ns(const Work& work) const;
    SaturatingCtas::Try ctas_for(const Work& work, uint32_t fits);
    CUresult launch_workers(Work& work, CUstream stream, const smt::Launch& launch, uint32_t workers);
    CUresult fitting(const Work& work, uint32_t* ctas);
    uint32_t multiprocessors() const;  // that the stream may use
    CUresult mark();
    uint64_t reached() const { return words_->reached.load(std::memory_order_acquire); }
    CUdeviceptr address_of(const void* word) const {
        return word_address_ + (static_cast<const char*>(word) - reinterpret_cast<const char*>(words_));
    }
    void prune();
    void forget_until(std::deque<Work>::iterator last);  // launches in flight before it are over
    void mark_tail();  // if no launch follows, and the tenant is preemptible or a preemptor
    bool tickets_used_up() const;
    void top_up();  // hands launches to the driver up to the launch-ahead limit
    void go_on();   // prune() and top_up()
    bool over_launch_ahead();
    void await_launch_ahead(Lock& lock);
    const Work* first_unfinished() const;  // null: there is none
    bool at_wait();                        // a wait holds it up, with nothing unfinished in front
    void end_waits();
    bool unfinished() const { return !in_flight_.empty() || !waiting_.empty(); }
    bool unfinished(uint64_t number) const {  // launches up to this one
        return (!in_flight_.empty() && in_flight_.front().number <= number) ||
               (!waiting_.empty() && waiting_.front().number <= number);
    }
    bool has_grown(size_t i) const {
        return words_->grown[i].load(std::memory_order_acquire) >= growths_[i].marker;
    }
    bool has_grown() const {
        for (size_t i = 0; i < growths_.size(); ++i) {
            if (!has_grown(i)) return false;
        }
        return true;
    }
    bool under_way() const { return !in_flight_.empty() || !unmanaged_.empty() || entering_ != 0; }
    CUresult clear_way(Lock& lock);
    CUresult wait_in_flight(Lock& lock, uint64_t number);
    CUresult send(uint32_t workers);  // further workers, to the quota-mode launch
    CUresult await_change(Lock& lock);
    void tell_changed();  // wakes the threads that wait for it, and announces that to the device
    void wake();          // wakes them only
    bool looks_on() const;
    void say_held_up(std::optional<device::HeldUp>* held_up) const;
    UnmanagedWindow::Number take_number(uint64_t key);  // 0: none was free in time
    int confined(const UnmanagedLaunch& launch);
    void go_away(int multiprocessors, UnmanagedPass* pass);
    CUresult await_turn(Lock& lock, uint64_t key, UnmanagedWindow::Number* number);
    CUresult settle();
    bool stop_in_flight();
    CUresult halt_run();
    void begin_stop(uint32_t name, uint64_t said_ns);
    uint32_t last_launched() const { return launched_[(launches_ - 1) % launched_.size()].name; }
    CUresult tickets_run(uint32_t* run);
    CUresult come_to_rest();
    CUresult get_ready();
    CUresult await_room(Lock& lock);
    void note_stop(uint64_t over_ns);
    void note_longest(const std::vector<smt::Mapping>& workers, uint64_t took_ns);
    void describe(const Work& work, schedule::Kernel* kernel) const;
    void estimate(const Work& work, schedule::Kernel* kernel) const;
    uint32_t usual_ctas(const Work& work) const;
    void forget_sample();
    void take_mappings(uint64_t stop_ns);  // mutex_ held. Not 0: duration of the stop that has ended
    struct Launched;
    Launched* launched_as(uint32_t launch);  // by its id, or the count that the id is made of
    void learn(Launched& launched, const std::vector<smt::Mapping>& workers);
    void learn_saturating(const Launched& launched, const std::vector<smt::Mapping>& workers);

    Dispatcher& dispatcher_;
    const std::shared_ptr<Tenant> tenant_;
    const CUstream stream_;
    const uint64_t id_;

    std::mutex mutex_;  // guards the rest
    std::condition_variable changed_;
    std::atomic<uint64_t> changes_{0};  // for threads that poll instead of sleeping
    State state_ = State::kPassThrough;
    schedule::TimePoint since_{};
    ControlBlock control_;
    DoorControl doors_;
    std::deque<Work> in_flight_;  // issued, oldest first
    LaunchAhead launch_ahead_;    // their cost
    std::deque<Work> waiting_;    // not issued, oldest first; the first may be half done
    uint32_t next_ticket_ = 0;
    bool used_ = false;      // the control block was used since its reset
    uint32_t launches_ = 0;  // smt::Launch::id of the next one
    struct Launched {
        uint32_t id = ~0u;  // smt::Launch::id
        uint32_t name = 0;
        ManagedFunction* function = nullptr;
        uint32_t chunk = 1;
        profiles::Shape shape;
        profiler::Placement placement;
        // CTAs that fit on an SM. Not 0: SaturatingCtas tries those in `placement`.
        uint32_t fits = 0;
        uint64_t blocks = 0;  // that it runs
        uint64_t alone = 0;   // Dispatcher::alone() when it began
        bool stopped = false;
        // The launch ran in part before: no duration is learnt from it.
        bool rest = false;
        // From the mappings read so far:
        uint64_t seen = 0;  // blocks
        uint64_t began = ~0ull, ended = 0;
    };
    std::array<Launched, 1024> launched_;  // the last ones, for their mappings
    // By id: workers of launches that SaturatingCtas tries, while some mappings are missing.
    std::map<uint32_t, std::vector<smt::Mapping>> told_;
    struct Unmanaged {
        uint64_t marker = 0;  // value of StreamWords::reached at which it is over
        uint32_t name = 0;
        UnmanagedWindow::Number number = 0;
        schedule::TimePoint issued{};
    };
    std::deque<Unmanaged> unmanaged_;       // in flight, oldest first
    uint32_t entering_ = 0;                 // threads with a pass; meanwhile the stream is not stopped
    uint32_t wanting_ = 0;                  // threads that wait for a pass
    schedule::TimePoint unmanaged_over_{};  // end of the last one
    int confined_to_ = 0;                   // SMs; 0: all
    schedule::Duration confines_longer_{};
    SideStream side_stream_;      // for the program's threads
    bool learning_ = false;       // launches are in flight that show how long a block takes
    uint32_t partial_reads_ = 0;  // in which mappings of some workers were missing
    bool gone_ = false;

    StreamWords* words_ = nullptr;
    CUdeviceptr word_address_ = 0;
    uint64_t marked_ = 0;                // the last marker
    uint32_t unmarked_ = 0;              // launches behind it
    schedule::TimePoint last_issued_{};  // when the last one was issued
    // Work::number of the last launch that is followed by an operation that cannot look at the control block.
    uint64_t unguarded_ = 0;
    uint64_t stop_said_ = 0;       // ns: when the stop under way was decided
    uint32_t stop_name_ = 0;       // kernel that it stops
    bool stop_unmanaged_ = false;  // only unmanaged work was in flight
    LongestTicket longest_;        // that the last stop waited for, from mappings
    Placement placement_;
    uint64_t unpreemptible_ = 0;  // until this marker is reached
    uint64_t ready_ = 0;  // the control block, or the stop word, is as last set up from this marker on
    // Quota-mode runs in a row in which no worker found a place.
    uint32_t fruitless_ = 0;
    uint64_t fruitless_of_ = 0;  // launch of these runs

    struct Growth {
        CUstream stream = nullptr;  // made on demand
        uint64_t marker = 0;        // the last one
    };
    std::array<Growth, StreamWords::kGrowths> growths_;  // streams for further workers
    size_t crowded_ = 0;                                 // times that none was idle
    CUevent begun_ = nullptr;                            // recorded when the run's control block is ready
    bool halted_ = false;                                // a stop was issued to the run under way
    std::string waits_because_;                          // the policy's reason for the wait
    // Error of a launch that had to wait; the program's next call returns it.
    CUresult failed_ = CUDA_SUCCESS;
    uint32_t run_workers_ = 0;  // of the run under way

    uint64_t numbers_ = 0;                // of launches
    WaitList waits_;                      // not known to be over
    std::atomic<bool> any_waits_{false};  // waits_ is not empty
    uint64_t last_other_ = 0;             // the marker behind the last unmanaged or other work
    std::mutex enqueuing_wait_;           // held while a wait is enqueued; taken before mutex_
    ControlBlock::State sample_;          // last look at the control block
    uint64_t asked_ = 0;                  // looks
    // The last look was asked for since tickets were last counted from 0.
    bool fresh_ = false;
    schedule::TimePoint sample_again_{};
};

}  // namespace smt::runtime::dispatch
