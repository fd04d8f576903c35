// Eight tenants of short jobs in virtual time: what the policies cost where there is nothing to gain by them.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "tests/policy/virtual_gpu.h"

using namespace smt::tests;

namespace {

// A program that waits for each of its launches. Some kernels have fewer blocks than places, or longer ones.
Program short_jobs(uint64_t id) {
    Program program;
    program.kernel = kernel(id, id % 2 ? 64 : 16, nth_of(kSm, 2));
    program.kernel.session = static_cast<uint32_t>(id);
    program.kernel.ctas_per_sm = 2;
    program.kernel.predicted = 100us;
    program.work = {.block_ns = id % 2 ? 50'000.0 : 100'000.0, .pipeline = 0.4, .memory = 0.3};
    program.launches = kEndless;
    program.gap_ns = 20'000;
    return program;
}

// Launches of eight such programs that are done in a fifth of a second.
uint64_t jobs_done(const std::string& name, bool profiled) {
    const auto policy = make_policy(name);
    const Device sixteen = device(16);
    VirtualGpu gpu(sixteen);
    for (uint64_t id = 1; id <= 8; ++id) {
        Program program = short_jobs(id);
        if (profiled) {
            auto profile = std::make_shared<Profile>();
            profile->identity = id;
            program.kernel.profile = profile;
        }
        gpu.add(program);
    }
    gpu.run(*policy, 2e8);
    uint64_t done = 0;
    for (const Program& each : gpu.programs) done += each.ends_ns.size();
    return done;
}

}  // namespace

TEST_CASE("in virtual time: eight tenants of short jobs lose little by any policy", "[policy]") {
    const uint64_t fifo = jobs_done("fifo", false);
    for (const char* name :
         {"greedy", "compact", "slice", "slice-paper", "hpf", "hpf-whole", "fair", "share"}) {
        for (const bool profiled : {false, true}) {
            const double part = static_cast<double>(jobs_done(name, profiled)) / static_cast<double>(fifo);
            std::printf("eight tenants of short jobs, %s%s: %.3f of fifo\n", name,
                        profiled ? ", exploring" : "", part);
            CHECK(part >= 0.95);
        }
    }
}

TEST_CASE("hpf: a crowd of short kernels of one priority runs as it is", "[policy]") {
    const auto of = [](uint64_t id, Duration predicted) {
        Kernel made = waiting(kernel(id, 100, nth_of(kSm, 2)));
        made.predicted = predicted;
        return made;
    };
    const std::vector<Kernel> crowd{of(1, 50us), of(2, 3ms), of(3, 100us)};
    Kernel pressing = crowd[2];
    pressing.priority = 1;
    const auto runs = [](const std::vector<Kernel>& kernels, const HpfKnobs& knobs = {}) {
        return said(make_hpf(knobs)->decide({device(4), kernels}, kBegin));
    };
    CHECK(runs(crowd) == Said{{1, "run"}, {2, "run"}, {3, "run"}});
    CHECK(runs({crowd[0], crowd[1]}) == Said{{1, "run"}});  // two are ordered
    CHECK(runs(crowd, {.short_kernel = 0us}) == Said{{1, "run"}});
    CHECK(runs({crowd[0], crowd[1], of(3, 4ms)}) == Said{{1, "run"}});
    // Of unknown time: until it has been at work for longer.
    CHECK(runs({crowd[0], crowd[1], waiting(kernel(3, 100, nth_of(kSm, 2)))}) == runs(crowd));
    Kernel long_at_work = kernel(3, 100, nth_of(kSm, 2));
    long_at_work.since = kBegin - 3ms;
    CHECK(runs({crowd[0], crowd[1], long_at_work}).at(1) == "run");
    CHECK(runs({crowd[0], crowd[1], long_at_work}).at(3) == "wait");
    CHECK(runs({crowd[0], crowd[1], pressing}).at(3) == "run");
    CHECK_FALSE(runs({crowd[0], crowd[1], pressing}).contains(2));
}

TEST_CASE("fair: weights hold in a crowd of short kernels, which overlap", "[policy]") {
    const auto done = [](const std::string& name, bool weighted) {
        const auto policy = make_policy(name);
        const Device sixteen = device(16);
        VirtualGpu gpu(sixteen);
        for (uint64_t id = 1; id <= 7; id += 2) {
            Program program = short_jobs(id);
            program.alone_ns = 100'000;
            program.kernel.weight = weighted && id == 1 ? 2 : 1;
            gpu.add(program);
        }
        gpu.run(*policy, 1e9);
        std::vector<double> all;
        for (const Program& each : gpu.programs) all.push_back(static_cast<double>(each.ends_ns.size()));
        return all;
    };
    const auto sum = [](const std::vector<double>& all) {
        return std::accumulate(all.begin(), all.end(), 0.0);
    };
    const std::vector<double> equal = done("fair", false), weighted = done("fair", true);
    std::printf("fair, a crowd of four: %.3f of fifo; at 2:1:1:1 %.3f : %.3f : %.3f : 1, %.3f of fifo\n",
                sum(equal) / sum(done("fifo", false)), weighted[0] / weighted[3], weighted[1] / weighted[3],
                weighted[2] / weighted[3], sum(weighted) / sum(done("fifo", false)));
    CHECK(sum(equal) >= 0.98 * sum(done("fifo", false)));
    CHECK(weighted[0] / weighted[1] == Approx(2).epsilon(0.05));
    CHECK(weighted[2] / weighted[3] == Approx(1).epsilon(0.05));
}

TEST_CASE("fair: two programs that wait for each launch fill each other's gaps", "[policy]") {
    const auto policy = make_policy("fair");
    VirtualGpu gpu(device(16));
    for (uint64_t id = 1; id <= 2; ++id) {
        Program program = short_jobs(id);
        program.kernel.blocks = 320;  // ten waves
        program.work.block_ns = 100'000;
        program.gap_ns = 200'000;
        program.kernel.weight = id == 1 ? 2 : 1;
        gpu.add(program);
    }
    gpu.run(*policy, 1e9);
    const auto done = [&](size_t which) { return static_cast<double>(gpu.programs[which].ends_ns.size()); };
    std::printf("fair, two with gaps at 2:1: %.0f and %.0f launches of 1 ms in 1 s\n", done(0), done(1));
    // With turns in one piece 555 and 277: each of the two gets more, the one that was idle less a little
    // more.
    CHECK(done(0) >= 590);
    CHECK(done(1) >= 330);
    CHECK(done(0) / done(1) >= 1.7);
}

TEST_CASE("fair: a crowd is of three, and of short kernels that can be stopped", "[policy]") {
    const auto of = [](uint64_t id, Duration predicted) {
        Kernel made = waiting(kernel(id, 100, nth_of(kSm, 2)));
        made.session = static_cast<uint32_t>(id);
        made.predicted = predicted;
        return made;
    };
    const auto running = [](const std::vector<Kernel>& kernels, const FairKnobs& knobs = {}) {
        const Said all = said(make_fair(knobs)->decide({device(4), kernels}, kBegin));
        return std::ranges::count_if(all, [](const auto& each) { return each.second != "wait"; });
    };
    const std::vector<Kernel> crowd{of(1, 50us), of(2, 3ms), of(3, 100us)};
    CHECK(running(crowd) == 3);
    CHECK(running({crowd[0], crowd[1]}) == 1);
    CHECK(running({crowd[0], crowd[1], of(3, 4ms)}) == 1);
    Kernel unknown = waiting(kernel(3, 100, nth_of(kSm, 2)));
    unknown.session = 3;
    CHECK(running({crowd[0], crowd[1], unknown}) == 3);
    unknown.state = State::kRunning;
    unknown.since = kBegin - 3ms;
    CHECK(running({crowd[0], crowd[1], unknown}) == 1);
    CHECK(running(crowd, {.short_kernel = 0us}) == 1);
}
