// Eight tenants of short jobs in virtual time: what the policies cost where there is nothing to gain by them.
#include <cstdio>
#include <string_view>

#include "tests/policy/virtual_gpu.h"

using namespace smt::tests;

namespace {

// Launches that are done within a second, of eight programs that wait for each of theirs.
uint64_t jobs_done(const std::string& name, bool profiled) {
    const auto policy = make_policy(name);
    const Device sixteen = device(16);
    VirtualGpu gpu(sixteen);
    for (uint64_t id = 1; id <= 8; ++id) {
        Program program;
        // 100 us: two rounds on all SMs; some kernels have fewer blocks than places, or longer ones.
        program.kernel = kernel(id, id % 2 ? 64 : 16, nth_of(kSm, 2));
        program.kernel.session = static_cast<uint32_t>(id);
        program.kernel.ctas_per_sm = 2;
        program.kernel.predicted = 100us;
        if (profiled) {
            auto profile = std::make_shared<Profile>();
            profile->identity = id;
            program.kernel.profile = profile;
        }
        program.work = {.block_ns = id % 2 ? 50'000.0 : 100'000.0, .pipeline = 0.4, .memory = 0.3};
        program.launches = kEndless;
        program.gap_ns = 20'000;
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
    for (const char* name : {"greedy", "compact", "slice", "slice-paper", "hpf", "hpf-whole", "fair"}) {
        for (const bool profiled : {false, true}) {
            const double part = static_cast<double>(jobs_done(name, profiled)) / static_cast<double>(fifo);
            std::printf("eight tenants of short jobs, %s%s: %.3f of fifo\n", name,
                        profiled ? ", exploring" : "", part);
            // One tenant at a time, with 100 us between two turns at least: fair is for weights.
            CHECK(part >= (std::string_view(name) == "fair" ? 0.6 : 0.95));
        }
    }
}

TEST_CASE("hpf: a crowd of short kernels of one priority runs as it is", "[policy]") {
    const auto of = [](uint64_t id, std::chrono::microseconds predicted) {
        Kernel made = waiting(kernel(id, 100, nth_of(kSm, 2)));
        made.predicted = predicted;
        return made;
    };
    const std::vector<Kernel> crowd{of(1, 50us), of(2, 250us), of(3, 100us)};
    Kernel pressing = crowd[2];
    pressing.priority = 1;
    const auto runs = [](const std::vector<Kernel>& kernels, const HpfKnobs& knobs = {}) {
        return said(make_hpf(knobs)->decide({device(4), kernels}, kBegin));
    };
    CHECK(runs(crowd) == Said{{1, "run"}, {2, "run"}, {3, "run"}});
    CHECK(runs({crowd[0], crowd[1]}) == Said{{1, "run"}});  // two are ordered
    CHECK(runs(crowd, {.short_kernel = 0us}) == Said{{1, "run"}});
    CHECK(runs({crowd[0], crowd[1], of(3, 300us)}) == Said{{1, "run"}});
    CHECK(runs({crowd[0], crowd[1], waiting(kernel(3, 100, nth_of(kSm, 2)))}) ==
          Said{{1, "run"}});  // of unknown time
    CHECK(runs({crowd[0], crowd[1], pressing}).at(3) == "run");
    CHECK_FALSE(runs({crowd[0], crowd[1], pressing}).contains(2));
}
