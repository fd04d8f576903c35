// Priority, and slo, in virtual time: a service at half load whose host computes between its launches, beside
// a training.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "tests/policy/virtual_gpu.h"

namespace smt::tests {
namespace {

constexpr double kPriorityMs = 1e6;  // ns
constexpr int kPrioritySms = 16;
constexpr double kServed = 8'000 * kPriorityMs;

// A request is forty small launches, each of which waits for its host.
Program host_bound(double host_us, const Target& target) {
    Program made;
    made.kernel = kernel(1, kPrioritySms, nth_of(kSm, 8));
    made.kernel.tenant = "service";
    made.kernel.session = 1;
    made.kernel.priority = 1;
    made.kernel.ctas_per_sm = 8;
    made.work = {50'000, 0.1, 0.1, 0.5};
    made.launches = 40;
    made.target = target;
    std::mt19937 random{5};
    std::uniform_real_distribution<double> part(0.5, 1.5);
    for (int i = 0; i < 997; ++i) made.host_ns.push_back(host_us * 1000 * part(random));
    const double time = 40 * (60'000 + host_us * 1000);
    for (double now = 0; now < kServed;) {
        now += std::exponential_distribution<double>(0.5 / time)(random);
        made.requests_ns.push_back(now);
    }
    return made;
}

Program full_training() {
    Program made;
    made.kernel = kernel(2, kPrioritySms * 4 * 4, nth_of(kSm, 4));
    made.kernel.tenant = "training";
    made.kernel.session = 2;
    made.kernel.ctas_per_sm = 4;
    made.work = {60'000, 0.2, 0.15, 0.6};
    made.launches = kEndless;
    return made;
}

struct HostBound {
    double p99 = 0;       // ms, of requests
    double requests = 0;  // part of the time in which one was under way
    double training = 0;  // blocks
};

HostBound run_beside(std::string_view policy_name, double host_us, bool service, bool training,
                     const Target& target = {}) {
    VirtualGpu gpu(device(kPrioritySms));
    if (service) gpu.add(host_bound(host_us, target));
    if (training) gpu.add(full_training());
    const auto policy = make_policy(policy_name);
    gpu.run(*policy, kServed);
    HostBound found;
    if (training) found.training = static_cast<double>(gpu.programs.back().blocks);
    if (!service) return found;
    const Program& served = gpu.programs.front();
    std::vector<double> times;
    for (size_t i = 0; i < served.served_ns.size(); ++i) {
        times.push_back((served.served_ns[i] - served.begun_ns[i]) / kPriorityMs);
        found.requests += (served.served_ns[i] - served.begun_ns[i]) / kServed;
    }
    std::sort(times.begin(), times.end());
    found.p99 = times[static_cast<size_t>(std::ceil(0.99 * static_cast<double>(times.size()))) - 1];
    return found;
}

}  // namespace

// What is missing of the rest is the idle grace period and a stop and a start for each request.
TEST_CASE(
    "priority: beside a service at half load a training has nearly all that its requests leave, and "
    "more than that under slo",
    "[policy]") {
    const double whole = run_beside("fifo", 0, false, true).training;
    for (const double host_us : {10.0, 30.0, 80.0}) {
        const HostBound alone = run_beside("fifo", host_us, true, false),
                        both = run_beside("priority", host_us, true, true);
        const double training = both.training / whole, left = 1 - both.requests;
        std::printf(
            "host %2.0f us: p99 %.3f of alone, requests %.3f of the time, training %.3f: %.3f of the rest\n",
            host_us, both.p99 / alone.p99, both.requests, training, training / left);
        CHECK(both.p99 <= 1.02 * alone.p99);
        CHECK(training >= 0.95 * left);
        CHECK(training <= left);
        const HostBound slo = run_beside("slo", host_us, true, true, {.slowdown = 1.05});
        std::printf("  under slo: p99 %.3f of alone, training %.3f\n", slo.p99 / alone.p99,
                    slo.training / whole);
        CHECK(slo.p99 <= 1.05 * alone.p99);
        CHECK(slo.training >= 1.3 * both.training);
    }
}

}  // namespace smt::tests
