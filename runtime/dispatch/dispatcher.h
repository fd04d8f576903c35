// The dispatcher: asks the policy which tenants' streams run, carries the decisions out, and writes them to
// the journal.
//
// A decision is made on the thread that brings news. That is a program's thread when a launch arrives that
// the policy may care about, so that no other thread has to be woken first. It is the dispatcher's own thread
// when the GPU has completed something. While no tenant is preemptible, launches pass without a decision, and
// the dispatcher's thread sleeps. While one tenant alone has work, its launches pass without a decision, and
// the dispatcher's thread sees them (solo.h).
//
// decide() makes a snapshot, asks the policy (policy_in_force.h), and gives its decision to the streams'
// orders (orders.h). look() asks experiments instead, where a stream is under one (experiments.h). Both end
// in follow(): the next step of a stream (decider.h) is carried out.
//
// Lock order: mutex_, then a stream's lock. A program's thread holds no stream's lock when it calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/dispatch/attention.h"
#include "runtime/dispatch/experiments.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/dispatch/notes.h"
#include "runtime/dispatch/orders.h"
#include "runtime/dispatch/pair_watch.h"
#include "runtime/dispatch/policy_in_force.h"
#include "runtime/dispatch/quiesce.h"
#include "runtime/dispatch/settings.h"
#include "runtime/dispatch/solo.h"
#include "runtime/dispatch/spin_lock.h"
#include "runtime/dispatch/supplies.h"
#include "runtime/dispatch/tenants.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::dispatch {

class Dispatcher {
public:
    Dispatcher(device::Device& device, journal::Writer& journal, std::unique_ptr<schedule::Policy> policy,
               const Settings& settings);
    ~Dispatcher();
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;

    // Replaces the policy. All streams resume, then the new policy decides.
    void set_policy(std::unique_ptr<schedule::Policy> policy);
    // What a tenant has from now on. Its streams keep their priority on the device's own scheduler.
    void set_terms(Tenant& tenant, int priority, double weight);
    // Of the policy. Takes no lock: also for a dispatcher that hangs.
    const schedule::Policy::Traits& policy() const { return policy_.traits(); }
    bool explores() const { return policy().explores != schedule::Policy::Explores::kNothing; }
    void record(std::unique_ptr<schedule::Recorder> recorder);  // every decision from now on

    // When a session's client has connected, and at the session's end.
    void enter(const std::shared_ptr<Tenant>& tenant);
    void exit(const std::shared_ptr<Tenant>& tenant);
    void ended(const std::shared_ptr<Tenant>& tenant);  // it has exited, and its work is over
    // See quiesce.h. 0: no window was opened.
    uint64_t begin_quiesce(const Tenant& tenant, bool frees);
    void end_quiesce(uint64_t call);

    // Suspension: what the tenant has on the GPU is stopped, or ends, and nothing of it begins until
    // resume(). Others do as if it were not there. Both may be called again. The caller keeps launches from
    // coming.
    void suspend(const std::shared_ptr<Tenant>& tenant);
    void resume(const std::shared_ptr<Tenant>& tenant);
    // Stops what has begun since. True: no launch of a suspended tenant runs or is being stopped, as far as
    // the dispatcher knows of it. Else `runs`: the journal's name of one; 0: it is not known.
    bool at_rest(const Tenant& tenant, uint32_t* runs);
    bool holds_back(const Tenant& tenant);  // launches of a suspended tenant, which go on after resume()

    // For streams.
    device::Device& device() { return device_; }
    const DriverApi& driver() const { return device_.driver(); }
    schedule::TimePoint now() const { return device_.now(); }
    uint64_t now_ns() const {
        return static_cast<uint64_t>(std::chrono::nanoseconds(now().time_since_epoch()).count());
    }
    bool maps() const { return settings_.maps; }
    bool gpu_time() const { return settings_.gpu_time; }  // launches are watched to their ends
    // A tenant with a limit for its kernels is present: it is watched where in its stream each launch is.
    bool watches() const { return tenants_.watched(); }
    schedule::Duration ahead() const { return settings_.ahead; }
    Notes& notes() { return notes_; }
    Supplies& supplies() { return supplies_; }
    Company& company() { return tenants_.company(); }
    void join(ManagedStream& stream);
    void leave(ManagedStream& stream);
    // Not 0: exactly one tenant is present. The value changes whenever a tenant enters or exits.
    uint64_t alone() const { return tenants_.alone(); }
    void arrived(ManagedStream& stream);  // launches wait, or other tenants wait for its work
    void began_unasked();                 // a stream has begun to work without a decision
    Begins::Counts begins() const { return begins_.counts(); }
    // Launches are kept that follow as the GPU progresses: ManagedStream::poll().
    void kept_back();
    void look_again();  // look again soon: there is something to learn

private:
    struct Member {
        ManagedStream* stream;
        Orders orders;
        std::unique_ptr<Decider> trial;  // an experiment decides; null: the policy, by `orders`
        bool behind = false;             // a step of the orders is left to do
        uint64_t launch = 0;             // the first unfinished one at the last look
        bool last_taken = false;         // its last block had been taken
        bool decided = false;            // the last decision saw its work
        bool refill = false;             // workers have left: send more, not before refill_again
        schedule::TimePoint refill_again{};
    };
    void run();
    void rest(WantedMutex::Hold& lock);  // until the next look
    bool look();                         // what the GPU has done. True: something has changed
    bool look(Member& member, const schedule::Kernel& kernel);
    void refill(schedule::TimePoint now);
    bool watch_pairs();                  // true: something was learnt
    bool pending();                      // news from the GPU is expected
    schedule::Duration poll_interval();  // until the next look, if nothing else is due
    bool learning() const;               // a launch in flight will show how long blocks take
    void read_mappings();
    void write_times();

    void decide();
    bool ask_and_carry_out();  // false: a study is missing
    void end_unasked();        // all launches that begin ask; ends the solo session
    void let_begin();
    void take_snapshot(const Tenant* solo, std::vector<schedule::Kernel>* over);
    bool hear_late(std::vector<schedule::Kernel>&& over);
    const Tenant* alone_with_work(const Tenant* last) const;
    void note_decisions();
    Member* member_of(uint64_t stream);
    void give(const schedule::Assignment& assignment);
    void give(const schedule::Confinement& confinement);
    void give(const schedule::Attained& attained);
    void follow(Member& member);                                  // takes its next step
    bool follow(Member& member, const schedule::Kernel& kernel);  // false: not possible now
    enum class Outcome { kDone, kFailed, kNotNow };
    static Outcome carry_out(ManagedStream& stream, const Step& step);
    void weigh_tenants();
    void company_changes();  // other tenants are present, or have other terms

    void await_window(WantedMutex::Hold& lock, const Tenant& tenant);
    static bool can_quiesce(const Member& member);
    bool quiesces(const Member& member) const;
    static bool suspended(const Member& member);
    void look_at_windows();

    device::Device& device_;
    const Settings settings_;
    Notes notes_;
    Supplies supplies_;

    Attention attention_;
    Begins begins_;
    WantedMutex mutex_;  // guards the rest
    PolicyInForce policy_;
    Experiments experiments_;
    PairWatch pair_watch_;
    Tenants tenants_;
    std::vector<Member> members_;
    const Tenant* solo_ = nullptr;  // of the solo session; null: there is none
    QuiesceWindows quiesce_;
    schedule::TimePoint read_again_{};   // earliest next read of mappings
    schedule::TimePoint write_again_{};  // earliest next write of GPU times
    bool ending_ = false;
    Thread thread_;  // started for the first stream
};

}  // namespace smt::runtime::dispatch
