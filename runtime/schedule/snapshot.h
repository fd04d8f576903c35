// What a policy sees: the kernels that have something left to do, and the device. Plain data; no CUDA.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "runtime/schedule/profile.h"
#include "runtime/schedule/resources.h"

namespace smt::runtime::schedule {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

// A stream's first unfinished kernel. A stream runs one at a time, so it stands for the stream.
struct Kernel {
    uint64_t id = 0;            // of the stream, the same in every snapshot
    std::string tenant;
    uint32_t session = 0;
    int priority = 0;           // more is more urgent
    bool managed = true;        // false: unmanaged work, which can be held back at its end only
    enum class State { kRunning, kStopping, kWaiting } state = State::kRunning;
    uint64_t blocks = 0;        // 0: not known
    uint64_t blocks_done = 0;
    int ctas_per_sm = 0;        // that fit
    int usual_ctas = 0;         // on each SM while it has no quotas: all that fit, or fewer that get as much done; 0: not known
    bool own_sms = false;       // its tenant has multiprocessors of its own, and quotas say nothing about which
    int multiprocessors = 0;    // that its stream's unmanaged kernels are confined to; 0: all
    TimePoint since{};          // in this state

    // What the policies with quotas look at. Filled as far as it is known: estimate.h says what is taken
    // for the rest.
    uint64_t launch = 0;        // counts those of the stream: another number is another kernel that has arrived
    bool last_taken = false;    // no block is left to take: its CTAs leave as they finish, no quota changes that
    double weight = 1;          // of the tenant, above 0: its share under `fair`
    Resources cta;              // all 0: not known
    std::optional<Duration> predicted;       // of the whole launch, alone with all the CTAs that fit
    std::optional<Duration> remaining;       // of that, from now on
    std::optional<Duration> preemption;      // what stopping it has taken lately
    std::shared_ptr<const Profile> profile;  // null: never seen before
};

struct Device {
    int multiprocessors = 0;
    Resources sm = {};          // what a multiprocessor has; 0: not known, and taken as endless
    std::optional<profiler::models::Multiprocessor> model = std::nullopt;   // schedulers and memory
};

// A tenant that somebody less urgent stands beside. What it did before that is not known.
struct Urgent {
    int priority = 0;
    TimePoint since{};
};

struct Snapshot {
    Device device;
    std::vector<Kernel> kernels;
    std::vector<Urgent> urgent = {};
};

}  // namespace smt::runtime::schedule
