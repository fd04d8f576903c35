// A policy decides which kernels run, on which multiprocessors, and why.
//
// decide() is a pure function of the snapshot, the time, and the state that the policy keeps from earlier
// decisions. It uses no clock, lock, input, output or CUDA. The dispatcher calls it when a kernel arrives,
// ends or has stopped, and after the delay that the last decision asked for. A kernel that the decision does
// not name keeps its state.
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
        kRun,   // all work of its stream, placed by the hardware
        kWait,  // stoppable: stops between two blocks; else: is held back between two kernels
    } action = Action::kRun;
    std::string reason;  // for the journal; set when the action changes
    // For kRun; valid for the stream's later launches too, until the stream is named again:
    Quota quota = {};    // CTAs on each SM
    uint64_t slice = 0;  // the kernel stops and waits after so many blocks; 0: it runs to its end
};

// Confines the unmanaged kernels of a stream, which cannot be stopped once they run, to a number of
// multiprocessors. All streams with the same number share the same set. It applies to kernels that are
// enqueued from now on, until it is changed.
struct Confinement {
    uint64_t kernel = 0;
    int multiprocessors = 0;  // at most; 0: all
    Duration longer_than{};   // only kernels with longer blocks, or with blocks of unknown duration
    std::string reason;
};

struct Decision {
    std::vector<Assignment> assignments;
    std::vector<Confinement> confinements;
    // The policy is called again after this time even if no event occurs. Nothing: only events count.
    std::optional<Duration> again;

    void ask_again(Duration after) { again = again ? std::min(*again, after) : after; }
};

// A computation that takes too long to run while launches wait for a decision. It holds all its inputs, and
// no lock is held while it runs.
class Study {
public:
    virtual ~Study() = default;
    virtual void run() = 0;
};

class Policy {
public:
    virtual ~Policy() = default;
    virtual std::string_view name() const = 0;
    // Which tenants the policy may ever stop or give a quota. Launches of other tenants need no bookkeeping.
    enum class Stops { kNone, kLessUrgent, kAny };
    virtual Stops stops() const = 0;
    // Whether stops should be short and launches should leave room for newcomers: launches then use the
    // saturating CTA count. Finding it costs each program some slow launches (dispatch/saturating_ctas.h).
    virtual bool short_stops() const { return true; }
    // The number of multiprocessors that confinements use, so that the set can be created in advance; 0: the
    // policy makes none.
    virtual int part(const Device&) const { return 0; }
    virtual Decision decide(const Snapshot& snapshot, TimePoint now) = 0;
    // A computation to run, and to pass to learn(), before the snapshot is decided on; null: none is missing.
    // Without it decide() does the computation itself: same decision, but it may take milliseconds.
    virtual std::unique_ptr<Study> study(const Snapshot&) { return nullptr; }
    virtual void learn(std::unique_ptr<Study>) {}  // a study() of this policy that has run
};
// Runs all missing studies, then decides. For callers without launches that wait.
Decision study_and_decide(Policy& policy, const Snapshot& snapshot, TimePoint now);

// make_policy() returns null for an unknown name.
std::unique_ptr<Policy> make_policy(std::string_view name);
std::vector<std::string> policy_names();
// Why a server cannot use that policy, with the names that it can use; empty if it can.
std::string policy_problem(std::string_view name);

}  // namespace smt::runtime::schedule
