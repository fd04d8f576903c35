// No tenant starves, except under strict priority; and what a decision takes.
#include <unistd.h>

#include <cstdio>

#include "runtime/schedule/record.h"
#include "runtime/schedule/recorder.h"
#include "tests/policy/modelled.h"
#include "tests/policy/virtual_gpu.h"
#include "tests/profiler/cost.h"

using namespace smt::tests;

namespace {

std::shared_ptr<const Profile> full_profile(double memory_ratio, int sms, int ctas) {
    Profile made;
    made.blocks = 1000;
    for (int c = 1; c <= ctas; ++c) made.configurations.push_back({c, 1e6 / c});
    made.preemption = 100us;
    made.slice_overhead = 10us;
    made.mix = Mix{{1 - memory_ratio, memory_ratio}, memory_ratio, 0, 10000};
    made.footprint = models::Footprint{sms, ctas, 1};
    return std::make_shared<Profile>(made);
}

// Long and short, small and large, alike and not; each launched again and again.
std::vector<Kernel> crowd(bool profiles) {
    struct Row {
        uint64_t blocks;
        uint32_t parts;
        double memory_ratio;
    };
    const Row rows[] = {{4000, 2, 0.3}, {4, 4, 0.01},  {4, 8, 0.01},   {500, 1, 0.3},
                        {100, 4, 0.1},  {8, 16, 0.01}, {3000, 8, 0.01}};
    std::vector<Kernel> kernels;
    for (const Row& row : rows) {
        Kernel made = kernel(kernels.size() + 1, row.blocks, nth_of(kSm, row.parts));
        if (profiles) made.profile = full_profile(row.memory_ratio, 4, static_cast<int>(row.parts));
        kernels.push_back(made);
    }
    return kernels;
}

constexpr double kQuarter = 1e9;  // ns

VirtualGpu gpu_with(const std::vector<Kernel>& kernels) {
    VirtualGpu gpu(modelled(4));
    for (const Kernel& each : kernels) gpu.add({.kernel = each, .work = {}, .launches = kEndless});
    return gpu;
}

// The fewest blocks that a program got done in any second of four.
uint64_t least_progress(Policy& policy, const std::vector<Kernel>& kernels) {
    VirtualGpu gpu = gpu_with(kernels);
    uint64_t least = UINT64_MAX;
    for (int quarter = 1; quarter <= 4; ++quarter) {
        for (Program& each : gpu.programs) each.blocks = 0;
        gpu.run(policy, quarter * kQuarter);
        for (const Program& each : gpu.programs) least = std::min(least, each.blocks);
    }
    return least;
}

}  // namespace

TEST_CASE("no tenant starves under greedy, hpf, fair, share, slice and compact", "[policy]") {
    for (const char* name : {"greedy", "hpf", "fair", "share", "slice", "slice-paper", "compact"}) {
        for (const bool profiles : {true, false}) {
            INFO(name << (profiles ? " with profiles" : " without profiles"));
            CHECK(least_progress(*make_policy(name), crowd(profiles)) > 0);
        }
    }
}

TEST_CASE("a tenant would starve without patience", "[policy]") {
    const AgingKnobs none{.starvation_timeout = std::chrono::hours(10)};
    CHECK(least_progress(*make_hpf({.aging = none}), crowd(true)) == 0);
    CHECK(least_progress(*make_slice({.aging = none}), crowd(true)) == 0);
    std::vector<Kernel> full{kernel(1, 1'000'000, nth_of(kSm, 1)), kernel(2, 1'000'000, nth_of(kSm, 1))};
    for (Kernel& each : full) each.profile = full_profile(0.1, 4, 1);  // all SMs
    CHECK(least_progress(*make_compact({.aging = none}), full) == 0);
    CHECK(least_progress(*make_compact(), full) > 0);
}

TEST_CASE("a low priority starves under hpf while others have work, which is what strict priority is",
          "[policy]") {
    std::vector<Kernel> kernels = crowd(true);
    kernels[0].priority = 1;  // the large one
    CHECK(least_progress(*make_hpf(), kernels) == 0);
}

TEST_CASE("equals that share what a more urgent kernel leaves do not starve under hpf", "[policy]") {
    std::vector<Kernel> kernels{kernel(1, 4, nth_of(kSm, 4)), kernel(2, 12, nth_of(kSm, 4)),
                                kernel(3, 4000, nth_of(kSm, 4))};
    kernels[0].priority =
        1;  // one SM of four; the second kernel needs the others, is short, and comes again and again
    CHECK(least_progress(*make_hpf(), kernels) > 0);
    CHECK(
        least_progress(*make_hpf({.short_job = {}, .aging = {.starvation_timeout = std::chrono::hours(10)}}),
                       kernels) == 0);
}

TEST_CASE("every policy gives the same decisions for the same snapshots", "[policy]") {
    for (const std::string& name : policy_names()) {
        const auto one = make_policy(name), two = make_policy(name);
        VirtualGpu first = gpu_with(crowd(true)), second = gpu_with(crowd(true));
        first.run(*one, kQuarter);
        second.run(*two, kQuarter);
        for (size_t i = 0; i < first.programs.size(); ++i)
            CHECK(first.programs[i].blocks == second.programs[i].blocks);
    }
}

namespace {

// Writes down what a policy is asked and decides.
class Recorded final : public Policy {
public:
    Recorded(std::string_view policy, const std::string& path)
        : Policy({"recorded", Stops::kAny}),
          policy_(make_policy(policy)),
          recorder_(path, 1ull << 30, [](const std::string& why) { FAIL(why); }) {
        recorder_.choose(policy);
    }
    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        const Decision decision = study_and_decide(*policy_, snapshot, now);
        recorder_.write(snapshot, now, decision);
        wanted.repeat(decision);
    }

private:
    std::unique_ptr<Policy> policy_;
    Recorder recorder_;
};

}  // namespace

TEST_CASE("what was recorded is decided again, the same", "[policy]") {
    char path[] = "/tmp/smt-recording-XXXXXX";
    REQUIRE(close(mkstemp(path)) == 0);
    for (const std::string& name : policy_names()) {
        {
            VirtualGpu gpu = gpu_with(crowd(true));
            Recorded recorded(name, path);
            gpu.run(recorded, kQuarter / 4);
        }
        const auto again = make_policy(name);
        int decisions = 0, different = 0;
        read_recording(path, [&](const Record& record) {
            const Decision decision = study_and_decide(*again, record.snapshot, record.now);
            ++decisions;
            different += record_line(record.snapshot, record.now, decision) !=
                         record_line(record.snapshot, record.now, record.decision);
        });
        INFO(name);
        CHECK(decisions > 10);
        CHECK(different == 0);
    }
    unlink(path);
}

TEST_CASE("slice: what is studied ahead of a decision changes nothing but the time that it takes",
          "[policy]") {
    std::vector<Kernel> kernels = crowd(true);
    kernels.resize(4);  // six pairs
    const Snapshot snapshot{modelled(132), kernels};
    const auto studied = make_slice(), not_studied = make_slice();
    int studies = 0;
    while (std::unique_ptr<Study> study = studied->study(snapshot)) {
        study->run();
        studied->learn(std::move(study));
        REQUIRE(++studies <= 6);
    }
    CHECK(studies > 0);
    const Decision first = studied->decide(snapshot, kBegin), second = not_studied->decide(snapshot, kBegin);
    CHECK(said(first) == said(second));
    CHECK(first.again == second.again);
}

TEST_CASE("no kernels, no decision", "[policy]") {
    for (const std::string& name : policy_names()) {
        const Decision decision = make_policy(name)->decide({device(132), {}}, kBegin);
        CHECK(decision.assignments.empty());
        CHECK_FALSE(decision.again);
    }
}

TEST_CASE("a server can have what the dispatcher carries out", "[policy]") {
    for (const char* carried_out : {"priority", "priority-whole", "fifo", "greedy", "hpf", "hpf-whole",
                                    "fair", "share", "slo", "compact", "slice", "slice-paper"})
        CHECK(policy_problem(carried_out).empty());
    const std::string choices =
        "fifo, priority, priority-whole, greedy, hpf, hpf-whole, fair, share, slo, compact, slice, "
        "slice-paper can be chosen";
    CHECK(policy_problem("nonsense") == "there is no policy 'nonsense'; " + choices);
}

// The first decision, one in which every stream has launched another kernel, and one in which nothing is new.
TEST_CASE("what a decision for 16 kernels takes", "[.][cost]") {
    std::vector<Kernel> kernels;
    for (uint64_t id = 1; id <= 16; ++id) {
        kernels.push_back(kernel(id, 100000 * id, nth_of(kSm, id % 2 ? 32 : 16)));
        kernels.back().priority = static_cast<int>(id % 4);
        kernels.back().profile = full_profile(0.01 * static_cast<double>(id), 8 * static_cast<int>(id), 8);
    }
    const Device h200 = modelled(132);
    for (const std::string& name : policy_names()) {
        const auto policy = make_policy(name);
        const auto begin = std::chrono::steady_clock::now();
        policy->decide({h200, kernels}, kBegin);
        const std::chrono::duration<double, std::micro> first = std::chrono::steady_clock::now() - begin;
        Snapshot next{h200, kernels}, same{h200, kernels};
        const double all_new = cost_us([&] {
            for (Kernel& each : next.kernels) ++each.launch, each.cta.registers ^= 64;
            policy->decide(next, kBegin);
        });
        const double nothing = cost_us([&] { policy->decide(same, kBegin); });
        std::printf("%-9s first %7.1f us   all new %6.2f us   nothing new %6.2f us\n", name.c_str(),
                    first.count(), all_new, nothing);
    }
}
