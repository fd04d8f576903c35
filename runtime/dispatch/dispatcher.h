// The dispatcher: asks the policy which tenants' streams run, carries the decisions out, and writes them to
// the journal.
//
// A decision is made on the thread that brings news. That is a program's thread when a launch arrives that
// the policy may care about, so that no other thread has to be woken first. It is the dispatcher's own thread
// when the GPU has completed something. While no tenant is preemptible, launches pass without a decision, and
// the dispatcher's thread sleeps.
//
// Lock order: mutex_, then a stream's lock. A program's thread holds no stream's lock when it calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/dispatch/durations.h"
#include "runtime/dispatch/graph_doors.h"
#include "runtime/dispatch/graph_moves.h"
#include "runtime/dispatch/half_ctas.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/dispatch/orders.h"
#include "runtime/dispatch/pairing.h"
#include "runtime/dispatch/settings.h"
#include "runtime/dispatch/side_by_side.h"
#include "runtime/dispatch/sm_sets.h"
#include "runtime/dispatch/spin_lock.h"
#include "runtime/dispatch/stream_words.h"
#include "runtime/dispatch/stress.h"
#include "runtime/dispatch/sweep.h"
#include "runtime/schedule/policy.h"
#include "runtime/schedule/recorder.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::dispatch {

// A session, as the dispatcher sees it.
struct Tenant {
    uint32_t session = 0;
    std::string name;
    int priority = 0;
    double weight = 1;    // share under a policy that goes by shares; above 0
    uint64_t stress = 0;  // seed of the stress experiment (stress.h); 0: none
    bool sweeps = false;  // launches are measured with the quotas of a plan (sweep.h)
    bool halves = false;  // launches are limited to half of the CTAs that fit (half_ctas.h)
    bool paired = false;  // launches are measured beside another program's (side_by_side.h)
    bool timed = false;   // another measurement times them: durations are not learnt here
    bool measured() const { return sweeps || halves || paired; }
    bool tried() const { return stress != 0 || measured(); }
    uint32_t journal_name = 0;
    // SMs for its streams; null: all. Set before its first stream is made.
    SmSetPointer places;
    std::atomic<bool> preemptible{false};   // its launches may be stopped, or limited to fewer CTAs
    std::atomic<bool> preemptor{false};     // launches of other tenants wait for the end of its own
    schedule::TimePoint preemptor_since{};  // since when; guarded by the dispatcher's mutex_
    mutable schedule::Duration awaited{};   // sum of its waits for quiesce windows; likewise
    UnmanagedWindow window;
};

class Dispatcher {
public:
    Dispatcher(device::Device& device, journal::Writer& journal, std::unique_ptr<schedule::Policy> policy,
               const Settings& settings);
    ~Dispatcher();
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;

    // Replaces the policy. All streams resume, then the new policy decides.
    void set_policy(std::unique_ptr<schedule::Policy> policy);
    // Whether the policy wants short stops. Takes no lock.
    bool short_stops() const { return short_stops_.load(std::memory_order_relaxed); }
    // Takes no lock: also for a dispatcher that hangs.
    const char* policy() const { return policy_name_.load(); }
    void record(std::unique_ptr<schedule::Recorder> recorder);  // every decision from now on

    // When a session's client has connected, and at the session's end.
    void enter(const std::shared_ptr<Tenant>& tenant);
    void exit(const std::shared_ptr<Tenant>& tenant);
    // See quiesce.h. 0: no window was opened.
    uint64_t begin_quiesce(const Tenant& tenant, bool frees);
    void end_quiesce(uint64_t number);

    // For streams.
    device::Device& device() { return device_; }
    const DriverApi& driver() const { return device_.driver(); }
    schedule::TimePoint now() const { return device_.now(); }
    uint64_t now_ns() const {
        return static_cast<uint64_t>(std::chrono::nanoseconds(now().time_since_epoch()).count());
    }
    bool maps() const { return settings_.maps; }
    schedule::Duration ahead() const { return settings_.ahead; }
    CUstream control() const { return control_; }  // on which nothing ever waits
    ControlMemory& control_memory() { return control_memory_; }
    DoorMemory& door_memory() { return door_memory_; }
    GraphWords& graph_words() { return graph_words_; }
    GraphMoves& graph_moves() { return graph_moves_; }
    // Whether the policy may stop tenants at all. Takes no lock.
    bool may_stop() const { return stops_.load(std::memory_order_relaxed) != schedule::Policy::Stops::kNone; }
    SmSets& sm_sets() { return sm_sets_; }
    // The set for a policy's number of SMs. Null if there is none, which the journal says once.
    SmSetPointer places_for(int multiprocessors);
    // The driver's priority of a stream, from the one that the program asked for. Tenants' priorities come
    // first, under every policy: the driver's range is divided among tenants above, at and below normal
    // priority.
    int stream_priority(const Tenant& tenant, int asked) const;
    int within_range(int priority) const;  // clamped, as the driver does
    void join(ManagedStream& stream);
    void leave(ManagedStream& stream);
    // Not 0: exactly one tenant is present. The value changes whenever a tenant enters or exits.
    uint64_t alone() const { return alone_.load(std::memory_order_relaxed); }
    void arrived(ManagedStream& stream);  // launches wait, or other tenants wait for its work
    // Launches are kept that follow as the GPU progresses: ManagedStream::poll().
    void kept_back();
    void look_again();  // look again soon: there is something to learn
    StreamWordsPool& words() { return words_; }
    // A stop that was decided at `said_ns`; the last worker had left at `over_ns`.
    void report_stop(const Tenant& tenant, uint32_t kernel_name, uint64_t said_ns, uint64_t over_ns,
                     const LongestTicket& longest);
    // The kernel's saturating CTA count: `ctas` per SM, of the `fits` that fit (saturating_ctas.h).
    void report_saturating(const Tenant& tenant, const std::string& kernel, uint32_t ctas, uint32_t fits);
    void report(const Tenant& tenant, uint32_t kernel_name, const std::vector<smt::Mapping>& mappings);

private:
    struct Member {
        ManagedStream* stream;
        Orders orders;
        bool behind = false;      // a step of the orders is left to do
        uint64_t launch = 0;      // the first unfinished one at the last look
        bool last_taken = false;  // its last block had been taken
        bool decided = false;     // the last decision saw its work
        bool refill = false;      // workers have left: send more, not before refill_again
        schedule::TimePoint refill_again{};
        std::unique_ptr<Experiment> trial = nullptr;  // null: the policy decides
    };
    void run();
    void rest(std::unique_lock<std::mutex>& lock);  // until the next look
    bool look();                                    // what the GPU has done. True: something has changed
    bool samples() const;                           // the policy goes by the progress of kernels
    void follow(Member& member);                    // carries out its orders
    bool follow(Member& member, const schedule::Kernel& kernel);
    Member* member_of(uint64_t stream);
    void refill(schedule::TimePoint now);
    void read_device();
    bool pending();                      // news from the GPU is expected
    schedule::Duration poll_interval();  // until the next look, if nothing else is due
    bool learning() const;               // a launch in flight will show how long blocks take
    void read_mappings();
    void decide();
    // What the policy wants to compute ahead of a decision. False: nothing.
    bool study(std::unique_lock<std::mutex>& lock);
    void carry_out(const schedule::Assignment& assignment);
    void carry_out(const schedule::Confinement& confinement);
    void say(const Tenant& tenant, const std::string& reason);
    void note(const Tenant& tenant, const std::string& line);
    // By the host's clock.
    void note_if_long(const Tenant& tenant, const char* what, schedule::TimePoint since);
    void sum_up(Member& member);
    std::vector<uint32_t> places(const Tenant& tenant) const;
    std::unique_ptr<Experiment> trial(const ManagedStream& stream);
    void note_company();
    void adopt(std::unique_ptr<schedule::Policy> policy);
    void say_durations();  // journals the policy's decision times so far
    void weigh_tenants();  // sets Tenant::preemptible and Tenant::preemptor
    bool any_quiesces() const;
    bool quiesces(const Member& member) const;
    bool all_told() const;  // a stop was issued on all streams that quiesce
    bool frees_in_quiesce(const Tenant& tenant) const;
    void await_quiesce(std::unique_lock<std::mutex>& lock, const Tenant& tenant);
    bool any_would_quiesce() const;
    void poll_quiesce();
    void end_lingering(const Tenant& tenant);
    void allow_quiesce();
    void resume_all();

    device::Device& device_;
    journal::Writer& journal_;
    const Settings settings_;
    CUstream control_ = nullptr;
    ControlMemory control_memory_;
    DoorMemory door_memory_;
    GraphWords graph_words_{door_memory_};
    GraphMoves graph_moves_{device_.driver()};
    StreamWordsPool words_;
    SmSets sm_sets_;
    std::atomic<bool> unplaced_{false};  // the journal says that there are no sets
    int least_ = 0, greatest_ = 0;       // the driver's stream priorities; lower numbers are more urgent

    std::atomic<bool> tops_up_{false};  // the thread looks again soon
    std::atomic<int> wanted_{0};        // program threads that want mutex_
    std::mutex mutex_;                  // guards the rest
    std::unique_ptr<schedule::Policy> policy_;
    // policy_->stops(), for reads without the mutex.
    std::atomic<schedule::Policy::Stops> stops_{schedule::Policy::Stops::kNone};
    std::atomic<bool> short_stops_{false};
    std::atomic<const char*> policy_name_{nullptr};  // policies' names are literals
    std::unique_ptr<schedule::Study> study_;         // a decision waits for it
    bool studying_ = false;                          // until it has been run and learnt
    uint64_t policies_ = 0;                          // number of policies so far
    Durations deciding_, decisions_;                 // Policy::decide() alone, and whole decisions
    std::unique_ptr<schedule::Recorder> recorder_;   // null: decisions are not recorded
    std::vector<std::shared_ptr<Tenant>> tenants_;
    uint64_t companies_ = 0;  // times that a tenant entered or exited
    std::atomic<uint64_t> alone_{0};
    std::vector<Member> members_;
    std::shared_ptr<Pairing> pairing_;  // shared by all paired tenants; made for the first one
    // Preemptible tenants are stopped while there are calls (quiesce.h).
    struct QuiesceState {
        struct Call {
            uint64_t number;
            uint32_t session;
            bool waits;  // until a stop was issued on all streams
        };
        std::vector<Call> calls;
        uint64_t numbers = 0;
        bool told = false;  // a stop was issued on all streams
        bool over = false;  // they were resumed although there are calls
        schedule::TimePoint until{};
        schedule::TimePoint lingers{};     // end of the time without a call that still belongs to the window
        uint32_t last = 0;                 // session of the last call
        schedule::TimePoint not_before{};  // earliest begin of the next window
    } quiesce_;
    std::condition_variable told_;                                // for waits in begin_quiesce()
    schedule::Snapshot snapshot_;                                 // the last one; kept for its memory
    schedule::TimePoint read_again_{};                            // earliest next read of mappings
    schedule::TimePoint ask_again_ = schedule::TimePoint::max();  // the policy, even without news
    bool ending_ = false;
    Thread thread_;  // started for the first stream
};

}  // namespace smt::runtime::dispatch
