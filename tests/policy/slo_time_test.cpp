// Slo in virtual time: a service whose requests come by themselves, beside a training.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "tests/policy/virtual_gpu.h"

namespace smt::tests {
namespace {

constexpr double kSloMs = 1e6;  // ns
constexpr int kSloSms = 16;

// A request is twenty small launches, which leave most of the device idle.
Program service(const Target& target) {
    Program made;
    made.kernel = kernel(1, kSloSms, nth_of(kSm, 8));
    made.kernel.tenant = "service";
    made.kernel.session = 1;
    made.kernel.priority = 1;
    made.kernel.ctas_per_sm = 8;
    made.work = {100'000, 0.1, 0.1, 0.5};
    made.launches = 20;
    made.target = target;
    return made;
}

// Fills the device, and asks for more memory than there is.
Program training(double memory) {
    Program made;
    made.kernel = kernel(2, kSloSms * 4 * 4, nth_of(kSm, 4));
    made.kernel.tenant = "training";
    made.kernel.session = 2;
    made.kernel.ctas_per_sm = 4;
    made.work = {60'000, 0.2, memory, 0.6};
    made.launches = kEndless;
    return made;
}

// A Poisson process, with another rate from `from_ns` on.
std::vector<double> arrivals(double until_ns, double rate, double from_ns, double later_rate) {
    std::mt19937 random{3};
    std::vector<double> all;
    for (double now = 0; now < until_ns;) {
        now += std::exponential_distribution<double>(now < from_ns ? rate : later_rate)(random) * kSloMs;
        all.push_back(now);
    }
    return all;
}

struct Outcome {
    double p99 = 0, later_p99 = 0;  // ms, of requests without the time in which they wait for others
    double queued = 0, later_queued = 0;
    double training = 0;  // blocks
    double longest = 0;   // ms in which the training got nothing done
};

double p99_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(std::ceil(0.99 * static_cast<double>(values.size()))) - 1];
}

// Twenty requests, some of which come while others are served: no pause in all of them.
constexpr double kLongest = 50;  // ms in which a training may get nothing done

constexpr double kUntil = 16'000 * kSloMs, kHalf = kUntil / 2, kLearnt = 0;

Outcome run(std::string_view policy_name, const Target& target, double load, double memory) {
    constexpr double kAlone = 2.2;  // ms
    VirtualGpu gpu(device(kSloSms));
    Program one = service(target);
    one.requests_ns = arrivals(kUntil - 200 * kSloMs, load / kAlone, kHalf, 2 * load / kAlone);
    gpu.add(one);
    if (memory > 0) gpu.add(training(memory));
    const auto policy = make_policy(policy_name);
    gpu.run(*policy, kUntil);
    const Program& served = gpu.programs.front();
    std::vector<double> times, later, queued, later_queued;
    for (size_t i = 0; i < served.served_ns.size(); ++i) {
        if (served.begun_ns[i] < kLearnt) continue;
        const bool is_later = served.begun_ns[i] >= kHalf;
        (is_later ? later : times).push_back((served.served_ns[i] - served.begun_ns[i]) / kSloMs);
        (is_later ? later_queued : queued).push_back((served.served_ns[i] - one.requests_ns[i]) / kSloMs);
    }
    return {p99_of(times),
            p99_of(later),
            p99_of(queued),
            p99_of(later_queued),
            memory > 0 ? static_cast<double>(gpu.programs.back().blocks) : 0,
            gpu.programs.back().longest_ns / kSloMs};
}

double training_alone(double memory) {
    VirtualGpu gpu(device(kSloSms));
    gpu.add(training(memory));
    gpu.run(*make_policy("fifo"), kUntil);
    return static_cast<double>(gpu.programs.front().blocks);
}

void print(const char* name, const Outcome& outcome, const Outcome& alone, double training) {
    std::printf(
        "%-14s p99 %.3f, at twice the load %.3f, with queueing %.3f and %.3f; training %.3f, longest without "
        "any %.2f ms\n",
        name, outcome.p99 / alone.p99, outcome.later_p99 / alone.later_p99, outcome.queued / alone.queued,
        outcome.later_queued / alone.later_queued, outcome.training / training, outcome.longest);
}

}  // namespace

TEST_CASE(
    "slo: a slowdown is kept in virtual time, also when the load doubles, and a training has more than "
    "under priority and is never starved",
    "[policy]") {
    for (const double memory : {0.15, 0.3, 0.6}) {
        const double whole = training_alone(memory);
        const Outcome alone = run("fifo", {}, 0.3, 0), fifo = run("fifo", {}, 0.3, memory),
                      priority = run("priority", {}, 0.3, memory);
        std::printf("memory %.2f\n", memory);
        print("fifo", fifo, alone, whole);
        print("priority", priority, alone, whole);
        for (const double slowdown : {1.1, 1.25}) {
            const Outcome slo = run("slo", {.slowdown = slowdown}, 0.3, memory);
            print(slowdown == 1.1 ? "slo 1.1" : "slo 1.25", slo, alone, whole);
            CHECK(slo.p99 <= slowdown * std::max(alone.p99, priority.p99));
            CHECK(slo.later_p99 <= slowdown * std::max(alone.later_p99, priority.later_p99));
            CHECK(slo.training > 1.3 * priority.training);
            CHECK(slo.training > 0.75 * whole);
            CHECK(slo.longest < kLongest);
        }
    }
}

TEST_CASE("slo: a p99 is kept in virtual time, also when the load doubles", "[policy]") {
    const double whole = training_alone(0.3);
    const Outcome alone = run("fifo", {}, 0.3, 0), priority = run("priority", {}, 0.3, 0.3);
    const Outcome tight = run("slo", {.p99 = 2600us}, 0.3, 0.3), loose = run("slo", {.p99 = 5ms}, 0.3, 0.3);
    print("slo 2.6 ms", tight, alone, whole);
    print("slo 5 ms", loose, alone, whole);
    CHECK(tight.p99 <= 2.6);
    CHECK(tight.later_p99 <= 2.6);
    CHECK(loose.p99 <= 5);
    CHECK(loose.later_p99 <= 5);
    CHECK(tight.training > 1.3 * priority.training);
    CHECK(loose.training >= tight.training);
    CHECK(std::max(tight.longest, loose.longest) < kLongest);
}

}  // namespace smt::tests
