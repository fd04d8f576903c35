// The output of a policy: what has changed of what it wants (wanted.h). A kernel that a decision does not
// name keeps its state. Plain data; no CUDA.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
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

// Confines kernels of a stream to a number of multiprocessors: the unmanaged ones, which cannot be stopped
// once they run, or all of them. All streams with the same number share the same set. It applies to kernels
// that are enqueued from now on, until it is changed.
struct Confinement {
    uint64_t kernel = 0;
    int multiprocessors = 0;  // at most; 0: all
    Duration longer_than{};   // of unmanaged kernels: only those with longer blocks, or of unknown duration
    std::string reason;
    bool stoppable = false;  // kernels that can be stopped, too
    // Launch-ahead limit of the stream, if it is below the server's; 0: the server's. So little work is soon
    // over, so other operations may follow it, and a stop may have to wait for its end.
    Duration ahead{};
    // As `ahead`: stops may take long. Nothing waits then for what is in flight, as under a policy that never
    // stops anything: no other operation behind it, no unmanaged launch, and no launch of an idle stream.
    static constexpr Duration kLongStops = Duration::max();
};

// How far a service attains its target, for its status.
struct Attained {
    uint32_t session = 0;
    enum class State { kLearning, kKept, kNotKept } state = State::kLearning;
    Duration seen_p99{};      // of the last requests; 0: none yet
    double headroom = 0;      // part of what is allowed that is left; below 0: it is exceeded
    int multiprocessors = 0;  // that best-effort tenants have beside its requests; 0: they are stopped
};

struct Decision {
    std::vector<Assignment> assignments;
    std::vector<Confinement> confinements;
    std::vector<Attained> attained;  // what has changed of it; no part of recordings
    // The policy is called again after this time even if no event occurs. Nothing: only events count.
    std::optional<Duration> again;

    void ask_again(Duration after) { again = again ? std::min(*again, after) : after; }
};

}  // namespace smt::runtime::schedule
