// Decides, with a policy, which tenants' streams run; carries the decisions out; says so in the journal.
//
// A decision is made on the thread that brings news: a program's, when a launch arrives that a policy might
// care about, so that nothing has to be woken first, or the dispatcher's own, when the GPU has done
// something. While no policy has a reason to stop anybody (no tenant is preemptible), launches
// pass without a look and this thread sleeps.
//
// Locks: mutex_ here, then a stream's. A program's thread holds no stream's lock when it calls.
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
    double weight = 1;          // its share where a policy goes by shares; above 0
    uint64_t stress = 0;        // not 0: the seed of what is done to its launches (stress.h)
    bool sweeps = false;        // they are measured (sweep.h)
    bool halves = false;        // they keep to half of the CTAs that fit (half_ctas.h)
    bool paired = false;        // they are measured beside another program's (side_by_side.h)
    bool timed = false;         // somebody else sees how long they take
    bool measured() const { return sweeps || halves || paired; }
    bool tried() const { return stress != 0 || measured(); }
    uint32_t journal_name = 0;
    SmSetPointer places;        // where its streams run; null: everywhere. Set before its first stream is made
    std::atomic<bool> preemptible{false};   // somebody may want its launches stopped, or fewer of their CTAs
    std::atomic<bool> preemptor{false};     // somebody waits for its launches to end,
    schedule::TimePoint preemptor_since{};  // since then; the dispatcher's
    mutable schedule::Duration awaited{}; // it has waited so long for standstills; the dispatcher's, too
    UnmanagedWindow window;
};

class Dispatcher {
public:
    Dispatcher(device::Device& device, journal::Writer& journal, std::unique_ptr<schedule::Policy> policy, const Settings& settings);
    ~Dispatcher();
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;

    // From now on; everybody goes on, and is told afresh.
    void set_policy(std::unique_ptr<schedule::Policy> policy);
    bool short_stops() const { return short_stops_.load(std::memory_order_relaxed); }   // the policy wants them; takes no lock
    const char* policy() const { return policy_name_.load(); }   // takes no lock: also of a dispatcher that hangs
    void record(std::unique_ptr<schedule::Recorder> recorder);   // every decision from now on

    // A session, when its client is there; and at its end.
    void enter(const std::shared_ptr<Tenant>& tenant);
    void exit(const std::shared_ptr<Tenant>& tenant);
    uint64_t begin_quiesce(const Tenant& tenant, bool frees);   // quiesce.h, as the next; 0: none
    void end_quiesce(uint64_t number);

    // For streams.
    device::Device& device() { return device_; }
    const DriverApi& driver() const { return device_.driver(); }
    schedule::TimePoint now() const { return device_.now(); }
    uint64_t now_ns() const { return static_cast<uint64_t>(std::chrono::nanoseconds(now().time_since_epoch()).count()); }
    bool maps() const { return settings_.maps; }
    schedule::Duration ahead() const { return settings_.ahead; }
    CUstream control() const { return control_; }   // on which nothing ever waits
    ControlMemory& control_memory() { return control_memory_; }
    SmSets& sm_sets() { return sm_sets_; }
    // The set that a policy means by so many; null where there is none, which the journal says once.
    SmSetPointer places_for(int multiprocessors);
    // What the program's priority of a stream is for the driver. Tenants' priorities come first, under every policy: the driver's
    // range is divided among those above, at and below normal.
    int stream_priority(const Tenant& tenant, int asked) const;
    int within_range(int priority) const;   // as the driver does
    void join(ManagedStream& stream);
    void leave(ManagedStream& stream);
    // Not 0: one tenant is here, and has been since this was last the same.
    uint64_t alone() const { return alone_.load(std::memory_order_relaxed); }
    void arrived(ManagedStream& stream);            // with launches that wait, or work that others wait for
    void kept_back();                               // some are to follow as the GPU gets on: ManagedStream::poll()
    void look_again();                              // soon, for there is something to learn
    StreamWordsPool& words() { return words_; }
    // A stop that was decided at one time was over at another: the last worker had left.
    void report_stop(const Tenant& tenant, uint32_t kernel_name, uint64_t said_ns, uint64_t over_ns, const LongestTicket& longest);
    // With so many CTAs on a multiprocessor, of those that fit, it gets as much done (saturating_ctas.h).
    void report_saturating(const Tenant& tenant, const std::string& kernel, uint32_t ctas, uint32_t fits);
    void report(const Tenant& tenant, uint32_t kernel_name, const std::vector<smt::Mapping>& mappings);

private:
    struct Member {
        ManagedStream* stream;
        Orders orders;
        bool behind = false;                  // a step of them is left to do
        uint64_t launch = 0;                  // the first one, when we last looked, and
        bool last_taken = false;              // whether its last block had been taken
        bool refill = false;                  // somebody's workers have left; not before
        schedule::TimePoint refill_again{};
        std::unique_ptr<Experiment> trial = nullptr;   // null: the policy has the say
    };
    void run();
    void rest(std::unique_lock<std::mutex>& lock);   // until the next look
    bool look();             // what has the GPU done? True: something has changed
    bool samples() const;    // the policy goes by how far kernels are
    void follow(Member& member);   // its orders
    bool follow(Member& member, const schedule::Kernel& kernel);
    Member* member_of(uint64_t stream);
    void refill(schedule::TimePoint now);
    void read_device();
    bool pending();          // the GPU will bring news
    schedule::Duration poll_interval();   // until the next look, when nothing else is due
    bool learning() const;   // some launch will tell how long blocks take
    void read_mappings();
    void decide();
    bool study(std::unique_lock<std::mutex>& lock);   // what the policy wants to know ahead of a decision; false: nothing
    void carry_out(const schedule::Assignment& assignment);
    void carry_out(const schedule::Confinement& confinement);
    void say(const Tenant& tenant, const std::string& reason);
    void note(const Tenant& tenant, const std::string& line);
    void note_if_long(const Tenant& tenant, const char* what, schedule::TimePoint since);   // by the host's clock
    void sum_up(Member& member);
    std::vector<uint32_t> places(const Tenant& tenant) const;
    std::unique_ptr<Experiment> trial(const ManagedStream& stream);
    void note_company();
    void adopt(std::unique_ptr<schedule::Policy> policy);
    void say_durations();    // of the policy's decisions until now
    void weigh_tenants();    // who may be stopped, who is preemptor
    bool any_quiesces() const;
    bool quiesces(const Member& member) const;
    bool all_told() const;   // who is to stand still
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
    StreamWordsPool words_;
    SmSets sm_sets_;
    std::atomic<bool> unplaced_{false};   // said that there are no sets
    int least_ = 0, greatest_ = 0;   // the driver's stream priorities; lower numbers are more urgent

    std::atomic<bool> tops_up_{false};   // the thread looks again soon
    std::atomic<int> wanted_{0};   // programs' threads that want mutex_
    std::mutex mutex_;          // the rest
    std::unique_ptr<schedule::Policy> policy_;
    std::atomic<schedule::Policy::Stops> stops_{schedule::Policy::Stops::kNone};   // what it says; asked without the mutex
    std::atomic<bool> short_stops_{false};
    std::atomic<const char*> policy_name_{nullptr};   // policies' names are literals
    std::unique_ptr<schedule::Study> study_;    // for which a decision is put off, until it
    bool studying_ = false;                     // has been run and learnt
    uint64_t policies_ = 0;                     // that there have been
    Durations deciding_, decisions_;            // what the policy took, and all of a decision
    std::unique_ptr<schedule::Recorder> recorder_;   // null: nobody wants to know
    std::vector<std::shared_ptr<Tenant>> tenants_;
    uint64_t companies_ = 0;    // times that somebody came or went
    std::atomic<uint64_t> alone_{0};
    std::vector<Member> members_;
    std::shared_ptr<Pairing> pairing_;   // of those tenants that are paired; from the first one on
    // Who may be stopped stands still while there are calls.
    struct QuiesceState {
        struct Call {
            uint64_t number;
            uint32_t session;
            bool waits;                   // until everybody has been told
        };
        std::vector<Call> calls;
        uint64_t numbers = 0;
        bool told = false;                // everybody has been,
        bool over = false;                // and has been let go on although there are calls
        schedule::TimePoint until{};
        schedule::TimePoint lingers{};    // without a call, until then,
        uint32_t last = 0;                // after one of this session
        schedule::TimePoint not_before{};   // the next one after that
    } quiesce_;
    std::condition_variable told_;      // who waits in begin_quiesce()
    schedule::Snapshot snapshot_;       // the last one; kept for its memory
    schedule::TimePoint read_again_{};  // what workers wrote down
    schedule::TimePoint ask_again_ = schedule::TimePoint::max();   // the policy, whatever happens
    bool ending_ = false;
    Thread thread_;                     // from the first stream on
};

}  // namespace smt::runtime::dispatch
