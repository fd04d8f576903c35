// A policy: who may run now, on which multiprocessors, and why.
//
// decide() is a pure function of the snapshot, the time, and what the policy keeps from earlier decisions:
// no clock, lock, input, output or CUDA in here. It is asked when a kernel arrives, ends, or has stopped, and
// when it said so.
// Kernels that the decision does not name stay as they are.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/schedule/resources.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

struct Assignment {
    uint64_t kernel = 0;
    enum class Action {
        kRun,    // everything of its stream, as the hardware likes
        kWait,   // stops between two blocks, unmanaged work between two kernels, and waits
    } action = Action::kRun;
    std::string reason;   // for the journal; said when the action changes
    // Of kRun, and for the stream's later launches too, until it is named again:
    Quota quota = {};     // CTAs on each SM
    uint64_t slice = 0;   // blocks, after which it stops and waits; 0: to its end
};

// Unmanaged kernels of a stream, which cannot be stopped once they run, keep to so many multiprocessors, the same for
// everybody who is given that number. What is enqueued on the stream from now on is meant; it stays until it is changed.
struct Confinement {
    uint64_t kernel = 0;
    int multiprocessors = 0;    // at most; 0: all
    Duration longer_than{};     // only those whose blocks take longer, or of which nothing is known yet
    std::string reason;
};

struct Decision {
    std::vector<Assignment> assignments;
    std::vector<Confinement> confinements;
    // Time that must pass until the policy is asked again, even if nothing happens meanwhile.
    std::optional<Duration> again;

    void ask_again(Duration after) { again = again ? std::min(*again, after) : after; }
};

// What takes too long to be computed while launches wait for a decision. It has all that it needs, and is run with no lock.
class Study {
public:
    virtual ~Study() = default;
    virtual void run() = 0;
};

class Policy {
public:
    virtual ~Policy() = default;
    virtual std::string_view name() const = 0;
    // Whom it may ever stop or give a quota: launches of all others need no bookkeeping.
    enum class Stops { kNone, kLessUrgent, kAny };
    virtual Stops stops() const = 0;
    // Whether launches should be quick to stop, and leave room for newcomers: with the fewest CTAs that get as much done. To find out
    // how many those are costs each program some slow launches (dispatch/saturating_ctas.h).
    virtual bool short_stops() const { return true; }
    // How many multiprocessors its confinements are to; 0: there are none. So that the set can be made before anybody works.
    virtual int part(const Device&) const { return 0; }
    virtual Decision decide(const Snapshot& snapshot, TimePoint now) = 0;
    // What should be run, and learnt, before the snapshot is decided on; null: it can be. decide() computes what nobody has: the
    // decision is the same, but may take milliseconds.
    virtual std::unique_ptr<Study> study(const Snapshot&) { return nullptr; }
    virtual void learn(std::unique_ptr<Study>) {}   // one of its own, that has run
};
// With everything that is to be studied, for those who have the time.
Decision study_and_decide(Policy& policy, const Snapshot& snapshot, TimePoint now);

// Null: there is none of that name. names(): all there are, for people.
std::unique_ptr<Policy> make_policy(std::string_view name);
std::vector<std::string> policy_names();
// Why a server cannot have that policy, in words; empty if it can: all that there are.
std::string policy_problem(std::string_view name);

}  // namespace smt::runtime::schedule
