// bench_models: what a question to a model costs a policy, one line each: the least mean of many calls, in
// microseconds. Plain processor work, so it needs no GPU. A question during a decision, for which all
// tenants wait, is meant to take 5 us at most.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "profiler/models/configurations.h"
#include "profiler/models/duration.h"
#include "profiler/models/preemption.h"
#include "profiler/models/saturation.h"
#include "profiler/models/stalls.h"
#include "profiler/models/utilization.h"
#include "runtime/profiles/known_kernel.h"

namespace {

namespace models = smt::profiler::models;
namespace profiles = smt::runtime::profiles;

volatile double sink = 0;

template <class Call>
void measure(const char* what, const Call& call) {
    constexpr int kTrials = 30, kCalls = 300;
    double least = 1e300;
    for (int trial = 0; trial < kTrials; ++trial) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < kCalls; ++i) sink = sink + call();
        least = std::min(
            least,
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
                kCalls);
    }
    std::printf("%8.3f us  %s\n", least, what);
}

std::vector<smt::profiler::Profile> some_profiles(const profiles::DeviceFacts& facts) {
    std::vector<smt::profiler::Profile> all;
    for (int grids = 8; grids < 20; ++grids) {
        smt::profiler::Profile each;
        each.key = {"kernel", "image", {256, 1, 1}, grids, facts.name};
        for (int ctas = 1; ctas <= 8; ++ctas)
            each.times[{facts.multiprocessors, ctas}] = {3, 3000, 0, 900'000 / ctas};
        all.push_back(each);
    }
    return all;
}

}  // namespace

int main() {
    const models::Memory memory{.latency = 600, .requests_per_cycle = 0.14};
    const models::Multiprocessor multiprocessor{4, {.latency = 600, .requests_per_cycle = 0.56}};
    const models::KernelModel streams{8, 8, 0.1, 0, 4000}, computes{4, 16, 0.01, 0, 9000};
    models::KernelModel told = streams, also = computes;
    told.interval = 6, told.latency = 400, told.requests = 1;
    also.interval = 9, also.latency = 200, also.requests = 0.2;

    std::vector<models::TimedLaunch> rows;
    for (double n = 1; n <= 8; ++n) rows.push_back({{n * 1000, 256, n * 1e6, 1024}, n * 9e5 + n * n * 100});
    const models::Duration duration = models::fit(rows);
    measure("duration of a launch (FLEP 4.2)", [&] { return duration.predict({5000, 256, 5e6, 1024}); });
    measure("time left of a launch (adaptive multi-tenancy, equation 1)",
            [] { return models::remaining_time(1e6, 4096, 1000); });
    std::vector<models::SaturationPoint> points;
    for (int ctas = 1; ctas <= 8; ++ctas)
        points.push_back({ctas, 1.0 * ctas / (ctas + 2), 132.0 * ctas / (ctas + 2)});
    measure("saturation of eight measured points (smCompactor 3.4)",
            [&] { return models::footprint(points, 132, 0.05)->throughput; });
    measure("PUR, MUR, alike (Kernelet 4.3)", [&] {
        const models::Counters counters{
            .blocks = 100, .nanoseconds = 10'000, .instructions = 3'000'000, .dram_reads = 1000};
        const models::Utilization use = models::utilization(counters, {1e9, 528, 80});
        return use.pur + models::too_alike(use, {0.5, 0.1});
    });
    measure("a stop (preemption.h)", [] { return models::stop_ns({605, 132, 8}); });
    measure("waits from counters (stalls.h)",
            [&] { return models::waits({16, 0.5, 3, 9, 0.1, 2}, memory).latency; });
    measure("IPC of one kernel, 8 blocks (Kernelet 4.4, equation 4)",
            [&] { return models::alone(multiprocessor, streams, 8); });
    measure("the same, told of waits", [&] { return models::alone(multiprocessor, told, 8); });
    measure("IPC and profit of a pair, kQuickStates (equations 1, 5, 6)",
            [&] { return models::co_schedule(multiprocessor, streams, computes, {4, 8}).profit; });
    measure("the same, told of waits",
            [&] { return models::co_schedule(multiprocessor, told, also, {4, 8}).profit; });
    told.rates.assign(8, 0.9), also.rates.assign(16, 0.9);
    measure("the same, and of times with fewer CTAs",
            [&] { return models::co_schedule(multiprocessor, told, also, {4, 8}).profit; });
    measure("the same, with 81 states",
            [&] { return models::co_schedule(multiprocessor, streams, computes, {4, 8}, 81).profit; });

    profiles::DeviceFacts facts;
    facts.name = "a device";
    facts.multiprocessors = 132;
    profiles::KnownKernel kernel("kernel", "image", facts);
    kernel.know(some_profiles(facts));
    const profiles::Shape shape{{256, 1, 1}, 5000};
    measure("a policy's look at a kernel's profile",
            [&] { return kernel.find(shape)->configurations.size(); });
    measure("how long a launch takes, from the profile", [&] { return *kernel.predict(shape); });
    measure("learning: a launch ran (not a question)",
            [&] { return kernel.ran(shape, {132, 8}, 5000, 100'000), 0.0; });
    return 0;
}
