// Solo session: while one tenant alone has work, its launches begin without a decision.
//
// A stream that the GPU has caught up with asks the policy before it launches. Programs that wait for each
// result have only such launches, and a decision takes several times as long as the launch. While no other
// tenant has work its outcome is known, if the policy says so (Policy::leaves_alone()). So each decision
// names the tenant that is alone with work, and that tenant is free (Tenant::free): its launches take no lock
// but their stream's.
//
//     a launch of that tenant           a decision, when another tenant has launched
//     locks its stream                  looks for work in all other streams: there is some
//     looks whether it is free          ends the session: the tenant is not free any more
//     issues the launch, and unlocks    locks each stream of that tenant, and looks for work
//
// If the launch has the stream's lock first, the decision sees its work. Otherwise the launch sees that the
// session is over, and asks. So no launch is missed.
//
// The policy hears of such work from the dispatcher's thread, which looks while the tenant has work, and for
// a while after it. Work that is over before it was seen is presented to the policy at the next decision, as
// if it still ran: policies go by when tenants have had work.
//
// Beside others a tenant is free if the policy says after a decision that nothing it launches would change
// one (Policy::lets_begin()). Each decision takes that back before it looks at any stream.
#pragma once

#include <atomic>
#include <cstdint>

namespace smt::runtime::dispatch {

// How many streams have begun to work: by a question to the policy, or without one. Any thread.
class Begins {
public:
    struct Counts {
        uint64_t asked = 0, unasked = 0;
    };
    void asked() { asked_.fetch_add(1, std::memory_order_relaxed); }
    void unasked() { unasked_.fetch_add(1, std::memory_order_relaxed); }
    Counts counts() const { return {asked_.load(), unasked_.load()}; }
    Counts take() { return {asked_.exchange(0), unasked_.exchange(0)}; }  // since the last call

private:
    std::atomic<uint64_t> asked_{0}, unasked_{0};
};

}  // namespace smt::runtime::dispatch
