// A tenant's stream that managed kernels are launched on: it sees to it that they can be stopped and gone
// on with, and that nobody else notices.
//
//   passes_through    launches go to the driver at once, one behind the other; they share one control block, on
//              which each has its own tickets, so nothing waits for anything (smt_worker.h: flow). Those that would
//              be too far ahead are kept here, and follow as the GPU gets on (launch_ahead.h)
//   stopping   the word was written; workers leave; later launches are kept here
//   stopped    the GPU has nothing of this stream to do. Launches wait here, the first one perhaps half
//              done, until the dispatcher lets them flow again or runs one of them with quotas (held)
//
// What cannot look at a control block (copies, events, other kernels) must not overtake a launch that may be
// stopped. So whoever enqueues such a thing calls guard() first: it waits until the launches are over where
// they may be stopped (Tenant::preemptible), and else lets it go ahead and remembers that what is in
// flight cannot be stopped any more. Nothing ever waits on the GPU: a waiting stream would hold up others.
//
// Whoever launches something unmanaged calls enter() instead. Where the tenant may be stopped that waits, too, while the
// stream is stopped or the tenant's window is full, in the program's thread: so order and errors are the driver's own.
// A stop with nothing but unmanaged work in flight is over when that has ended.
//
// What the program's threads call is in program_side.cpp, how launches flow in pass_through.cpp, what policies are told in progress.cpp and mappings.cpp, the rest here.
//
// Any thread. mutex_ is held over driver calls that do not wait, never over a wait.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/device/held_up.h"
#include "runtime/dispatch/launch_ahead.h"
#include "runtime/dispatch/control_block.h"
#include "runtime/dispatch/unmanaged.h"
#include "runtime/dispatch/placement.h"
#include "runtime/dispatch/stream_words.h"
#include "runtime/dispatch/side_stream.h"
#include "runtime/dispatch/work.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::dispatch {

class Dispatcher;
struct Tenant;

class ManagedStream {
public:
    ManagedStream(Dispatcher& dispatcher, std::shared_ptr<Tenant> tenant, CUstream stream);
    ~ManagedStream();   // settled, or its client is gone and its stream is idle
    ManagedStream(const ManagedStream&) = delete;
    ManagedStream& operator=(const ManagedStream&) = delete;

    CUresult open();

    // The program's threads.
    // NOT_SUPPORTED: its managed form does not fit where the kernel itself might; nothing was done.
    CUresult launch(Work&& work);
    CUresult guard();        // before anything else is enqueued on the stream, or waited for
    CUresult enter(const UnmanagedLaunch& launch, UnmanagedPass* pass);   // before something unmanaged is launched
    // What the driver has of it, and that all until then is over: for who has waited for the driver's stream.
    uint32_t issued();
    void over(uint32_t issued);
    void forget_code();      // no launch is unfinished, and kernels that were launched may go
    bool held_back();        // launches are unfinished that the driver knows nothing of
    // For a single launch that stands in the stream's order and runs elsewhere (side_stream.h).
    CUresult leave(const SmSet* set, CUstream* away) { return side_stream_.leave(stream_, set, away); }
    CUresult come_back(CUstream away) { return side_stream_.come_back(stream_, away); }
    CUresult note_other();   // something else was enqueued that a policy should know about
    void abandon();          // the client is gone: what runs is stopped, what does not run never will. To be called until the stream is idle

    // The dispatcher.
    uint64_t id() const { return id_; }
    schedule::TimePoint now() const;           // by the dispatcher's clock
    const Tenant& tenant() const { return *tenant_; }
    bool describe(schedule::Kernel* kernel);   // the first unfinished one; false: nothing is left to do
    void sample();           // asks now and then how far it is; describe() then says so
    bool passes_through();
    bool keeps_back();       // poll() hands over launches that are kept here
    bool ready();            // halt() and change() are heard by the run under way
    void confine(const schedule::Confinement& confinement);   // unmanaged launches from now on
    void waits_because(const std::string& reason);   // for `smt status`; empty: it does not wait
    void mark_what_is_there();   // somebody will want to know when that is over
    bool stop();             // false: what is in flight cannot be stopped yet; ask again
    CUresult pass_through();         // stopped: everything goes on
    // Stopped: the first launch runs with these quotas, `blocks` of it at most.
    CUresult run(const QuotaTable& quotas, uint64_t blocks);
    // While it runs; nothing else is done to it once it is halted.
    CUresult change(const QuotaTable& quotas);
    CUresult grow(uint32_t workers);             // so many more
    CUresult fill_up();                          // as many more as find a place
    CUresult halt();                             // it ends soon
    uint64_t residents();                        // workers of the run with quotas that have a place
    bool learning();         // read_mappings() is worth a call
    void read_mappings();    // of launches that flow: learns from them, and shows them
    // The first unfinished launch. False: there is none.
    struct Front {
        std::shared_ptr<profiles::KnownKernel> known;
        profiles::Shape shape;
        uint64_t left = 0;         // blocks
        uint64_t block_ns = 0;     // 0: not known
        uint64_t most_timed = 0;   // blocks of a slice whose workers all have room to write down their times
        int ctas_per_sm = 0;       // that fit
    };
    bool front(Front* front);
    bool poll();             // looks what the GPU has done; true: the state has changed
    Placement::Sums placement();   // of its runs with quotas, where workers write down where they are

private:
    friend class UnmanagedPass;
    CUresult entered(const UnmanagedPass& pass);
    void withdrawn(UnmanagedWindow::Number number);

    // kRunning: stopped, but for waiting_.front(), which runs with quotas.
    enum class State { kPassThrough, kStopping, kStopped, kRunning };
    using Lock = std::unique_lock<std::mutex>;

    CUresult issue(Work&& work);
    CUresult prepare(Work& work, uint64_t blocks, smt::Launch* launch, uint32_t* workers);
    uint32_t ticket_blocks(const Work& work, uint64_t each) const;
    uint64_t expected_block_ns(const Work& work) const;
    SaturatingCtas::Try ctas_for(const Work& work, uint32_t fits);
    CUresult launch_workers(Work& work, CUstream stream, const smt::Launch& launch, uint32_t workers);
    CUresult fitting(const Work& work, uint32_t* ctas);
    uint32_t multiprocessors() const;   // that the stream may use
    CUresult mark();
    uint64_t reached() const { return words_->reached.load(std::memory_order_acquire); }
    CUdeviceptr address_of(const void* word) const { return word_address_ + (static_cast<const char*>(word) - reinterpret_cast<const char*>(words_)); }
    void prune();
    void forget_until(std::deque<Work>::iterator last);   // launches in flight before it are over
    void mark_tail();        // of launches that are preemptor, when no further one follows
    bool tickets_used_up() const;
    void top_up();           // the driver, with what there is room for
    void go_on();            // both
    bool over_launch_ahead();
    void await_launch_ahead(Lock& lock);
    const Work* first_unfinished() const;   // null: there is none
    bool unfinished() const { return !in_flight_.empty() || !waiting_.empty(); }
    bool unfinished(uint64_t number) const {   // launches until this one
        return (!in_flight_.empty() && in_flight_.front().number <= number) || (!waiting_.empty() && waiting_.front().number <= number);
    }
    bool has_grown(size_t i) const { return words_->grown[i].load(std::memory_order_acquire) >= growths_[i].marker; }
    bool has_grown() const {
        for (size_t i = 0; i < growths_.size(); ++i) {
            if (!has_grown(i)) return false;
        }
        return true;
    }
    bool under_way() const { return !in_flight_.empty() || !unmanaged_.empty() || entering_ != 0; }
    CUresult clear_way(Lock& lock);
    CUresult wait_in_flight(Lock& lock, uint64_t number);
    CUresult send(uint32_t workers);   // to the launch that runs with quotas
    CUresult await_change(Lock& lock);
    void tell_changed();   // to who waits for it
    void wake();           // only
    bool looks_on() const;
    void say_held_up(std::optional<device::HeldUp>* held_up) const;
    UnmanagedWindow::Number take_number(uint64_t key);   // 0: none was free for so long
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
    void take_mappings(uint64_t stop_ns);   // mutex_ held; not 0: at the end of a stop that took so long
    struct Launched;
    Launched* launched_as(uint32_t launch);   // its id, or what that is made of
    void learn(Launched& launched, const std::vector<smt::Mapping>& workers);
    void learn_saturating(const Launched& launched, const std::vector<smt::Mapping>& workers);

    Dispatcher& dispatcher_;
    const std::shared_ptr<Tenant> tenant_;
    const CUstream stream_;
    const uint64_t id_;

    std::mutex mutex_;                 // the rest
    std::condition_variable changed_;
    std::atomic<uint64_t> changes_{0}; // for who looks and does not sleep
    State state_ = State::kPassThrough;
    schedule::TimePoint since_{};
    ControlBlock control_;
    std::deque<Work> in_flight_;       // issued, oldest first
    LaunchAhead launch_ahead_;                      // what they cost
    std::deque<Work> waiting_;         // not issued, oldest first; the first may be half done
    uint32_t next_ticket_ = 0;
    bool used_ = false;                // the control block, since it was reset
    uint32_t launches_ = 0;            // smt::Launch::id of the next one
    struct Launched {
        uint32_t id = ~0u;             // smt::Launch::id
        uint32_t name = 0;
        ManagedFunction* function = nullptr;
        uint32_t chunk = 1;
        profiles::Shape shape;
        profiler::Placement placement;
        uint32_t fits = 0;             // CTAs on a multiprocessor; not 0: SaturatingCtas asks what becomes of those in `placement`
        uint64_t blocks = 0;           // that it runs
        uint64_t alone = 0;            // Dispatcher::alone() when it began
        bool stopped = false;
        bool rest = false;             // of a launch that ran in part before: no launch to learn a duration from
        // Of the workers that were read:
        uint64_t seen = 0;             // blocks
        uint64_t began = ~0ull, ended = 0;
    };
    std::array<Launched, 1024> launched_;   // the last ones, for their mapping
    std::map<uint32_t, std::vector<smt::Mapping>> told_;   // by id: workers of launches that SaturatingCtas asks about, while some are missing
    struct Unmanaged {
        uint64_t marker = 0;           // when the stream's word says so much, it is over
        uint32_t name = 0;
        UnmanagedWindow::Number number = 0;
        schedule::TimePoint issued{};
    };
    std::deque<Unmanaged> unmanaged_;        // in flight, oldest first
    uint32_t entering_ = 0;            // threads with a pass; meanwhile the stream is not stopped
    uint32_t wanting_ = 0;             // threads that wait for one
    schedule::TimePoint unmanaged_over_{};   // the last one's end
    int confined_to_ = 0;              // multiprocessors; 0: all
    schedule::Duration confines_longer_{};
    SideStream side_stream_;                        // the program's threads
    bool learning_ = false;            // launches are in flight that tell how long a block takes
    uint32_t partial_reads_ = 0;       // in which not all of their workers had told
    bool gone_ = false;

    StreamWords* words_ = nullptr;
    CUdeviceptr word_address_ = 0;
    uint64_t marked_ = 0;              // the last marker
    uint32_t unmarked_ = 0;            // launches behind it,
    schedule::TimePoint last_issued_{};   // the last one's moment
    uint64_t unguarded_ = 0;           // Work::number of the last launch with something enqueued behind it that cannot look
    uint64_t stop_said_ = 0;           // ns: when the stop under way was decided,
    uint32_t stop_name_ = 0;           // and which kernel it stops
    bool stop_unmanaged_ = false;         // and whether nothing but unmanaged work was in flight
    LongestTicket longest_;            // that the last stop waited for, as far as workers wrote it down
    Placement placement_;
    uint64_t unpreemptible_ = 0;         // until this marker is reached
    uint64_t ready_ = 0;               // the control block is as it was last set up, from this marker on
    uint32_t fruitless_ = 0;           // runs with quotas in which no worker found a place, one after the other,
    uint64_t fruitless_of_ = 0;        // of this launch

    struct Growth {
        CUstream stream = nullptr;     // made when it is needed
        uint64_t marker = 0;           // its last
    };
    std::array<Growth, StreamWords::kGrowths> growths_;   // further workers
    size_t crowded_ = 0;               // times that none was idle
    CUevent begun_ = nullptr;          // the run's control block is ready
    bool halted_ = false;              // the run under way was told to end
    std::string waits_because_;        // why the policy has it wait
    CUresult failed_ = CUDA_SUCCESS;   // of a launch that had to wait; the program's next call says so
    uint32_t run_workers_ = 0;         // of the run under way

    uint64_t numbers_ = 0;             // of launches
    ControlBlock::State sample_;       // the last look at the control block
    uint64_t asked_ = 0;               // looks
    bool fresh_ = false;               // the last one was asked for since tickets were last counted from 0
    schedule::TimePoint sample_again_{};
};

}  // namespace smt::runtime::dispatch
