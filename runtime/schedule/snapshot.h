// The input of a policy: the kernels with unfinished work, and the device. Plain data; no CUDA.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "runtime/schedule/profile.h"
#include "runtime/schedule/resources.h"

namespace smt::runtime::schedule {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

inline double ns_of(Duration of) { return std::chrono::duration<double, std::nano>(of).count(); }

using LaunchName = std::pair<uint64_t, uint64_t>;  // stream and launch

// The first unfinished kernel of a stream. A stream runs one kernel at a time, so the kernel represents the
// stream.
struct Kernel {
    uint64_t id = 0;  // of the stream; stable over snapshots
    std::string tenant;
    uint32_t session = 0;
    int priority = 0;                                       // a larger number is more urgent
    bool managed = true;                                    // it can be stopped, and given quotas and slices
    bool has_door = false;                                  // it is not managed, but can be stopped
    bool stoppable() const { return managed || has_door; }  // else held back only between two kernels
    enum class State { kRunning, kStopping, kWaiting } state = State::kRunning;
    uint64_t blocks = 0;  // 0: not known
    uint64_t blocks_done = 0;
    int ctas_per_sm = 0;      // the maximum that fits on an SM
    int usual_ctas = 0;       // on an SM without quotas: all, or the saturating CTA count; 0: not known
    bool own_sms = false;     // its tenant has SMs of its own; quotas do not say which
    int multiprocessors = 0;  // that its stream is confined to by a policy (decision.h); 0: all
    Duration ahead{};         // its launch-ahead limit by a policy; 0: the server's
    TimePoint since{};        // in this state

    // For the policies with quotas. Filled as far as known; estimate.h defines the substitutes.
    uint64_t launch = 0;  // number of the launch in the stream; another number is another kernel
    LaunchName name() const { return {id, launch}; }
    bool last_taken = false;  // no block is left to take: CTAs leave as they finish, quotas have no effect
    double weight = 1;        // of the tenant, above 0: its part under `fair` and `share`
    Resources cta;            // all 0: not known
    // For the whole launch, alone with all the CTAs that fit: the last one with these scalars took that, or a
    // regression over others says so (dispatch/last_durations.h), or the profile.
    std::optional<Duration> predicted;
    std::optional<Duration> remaining;       // of `predicted`, from now on
    std::optional<Duration> preemption;      // measured at recent stops
    std::shared_ptr<const Profile> profile;  // null: none

    // GPU time that the session has received, in time that its work takes alone (dispatch/gpu_time.h): for
    // what is complete of all its streams, and for what is under way in this one.
    Duration received{};
    Duration guessed{};  // of `received`: for kernels of which that time is not known
    Duration receiving{};
    // What is known of its tenant's launches is corrected by this factor, which was measured so often.
    double correction = 1;
    uint32_t corrections = 0;
};

struct Device {
    int multiprocessors = 0;
    Resources sm = {};  // resources of a multiprocessor; 0: not known, taken as infinite
    std::optional<profiler::models::Multiprocessor> model = std::nullopt;  // schedulers and memory

    int sms() const { return std::max(1, multiprocessors); }  // for a division
};

// A tenant that shares the server with a less urgent one, and since when. What it did before is not known.
struct Urgent {
    int priority = 0;
    TimePoint since{};
};

// What a tenant needs of its requests (requests.h): 99 of 100 of them take no longer than that. Nothing set:
// it is a best-effort tenant.
struct Target {
    Duration p99{};       // 0: not set
    double slowdown = 0;  // of the 99th percentile that it has by itself, at least 1; 0: not set
    bool any() const { return p99 > Duration::zero() || slowdown > 0; }
};

// Shorter times without work are no pauses: a program that waits, computes and launches again takes less
// (policies/priority.cpp: kIdleGrace).
inline constexpr Duration kLeastPause = std::chrono::microseconds(200);

// A time without work between two bursts of launches.
struct Pause {
    TimePoint from{}, to{};
    uint64_t launches = 0, over = 0;  // of the session, when it began
};

// When a session has work, as its streams see it: when a launch begins, and when a thread sees the last one's
// end. Work is what Kernel stands for.
struct Activity {
    bool works = false;          // now
    TimePoint began{}, ended{};  // when work last began behind none, and when all of it last ended
    std::vector<Pause>
        pauses;              // of kLeastPause or more that are over: at least those since the last snapshot
    uint64_t forgotten = 0;  // pauses since then that are not among them, all older
};

// A session of a tenant with a target that shares the server with best-effort tenants, also while it has no
// work.
struct Service {
    uint32_t session = 0;
    std::string tenant;
    Target target;
    uint64_t launches = 0;  // so far
    uint64_t over = 0;      // of them
    Activity activity = {};
};

struct Snapshot {
    Device device;
    std::vector<Kernel> kernels;
    std::vector<Urgent> urgent = {};
    std::vector<Service> services = {};
};

}  // namespace smt::runtime::schedule
