// Many GPUs in virtual time: tenants are placed once, get their memory or wait, and what rules bring is what
// it has to be where that is known.
#include "tools/fleet/fleet.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/policy/snapshots.h"
#include "tests/unit/temporary_folder.h"

namespace smt::tests {
namespace {

using namespace fleet;
using Catch::Matchers::Contains;

constexpr int kSms = 4;
constexpr double kMs = 1e6;
constexpr uint64_t kG = 1ull << 30;

// Has all of the GPU for a millisecond, and then nothing for `gap_ms`, `launches` times.
Tenant tenant_of(const std::string& name, uint64_t launches, double gap_ms) {
    Tenant tenant;
    tenant.name = name;
    Program& stream = tenant.streams.emplace_back();
    stream.kernel = kernel(1, 10 * kSms * 2, nth_of(kSm, 2));
    stream.kernel.ctas_per_sm = 2;
    stream.work = {.block_ns = kMs / 10, .pipeline = 0.5};
    stream.alone_ns = kMs;
    stream.launches = launches;
    stream.gap_ns = gap_ms * kMs;
    learn(tenant, device(kSms));
    return tenant;
}

struct Coming {
    size_t tenant;
    double ms;
    uint64_t memory = kG;
};

Workload workload_of(std::vector<Tenant> tenants, const std::vector<Coming>& coming, size_t gpus) {
    Workload workload{device(kSms), gpus, 80 * kG, std::move(tenants), {}};
    for (const Coming& each : coming) {
        const double alone_ns = workload.tenants[each.tenant].alone_ns;
        workload.jobs.push_back({each.tenant, 1, each.memory, each.ms * kMs, alone_ns});
    }
    return workload;
}

Workload drawn(uint64_t seed) {
    return spread(device(kSms), {tenant_of("busy", 3, 0), tenant_of("half", 3, 1), tenant_of("idle", 2, 8)},
                  {.gpus = 8, .jobs = 150, .seed = seed, .load = 1.2, .gpu_memory = 80 * kG});
}

std::vector<size_t> gpus_of(const Outcome& outcome) {
    std::vector<size_t> gpus;
    for (const Placement& each : outcome.placements) gpus.push_back(each.gpu.value());
    return gpus;
}

const Rule& rule(const char* name) { return *find_rule(name); }

// The most that its tenants hold at once.
uint64_t most_memory(const Workload& workload, const Outcome& outcome, size_t gpu) {
    uint64_t most = 0;
    for (const Placement& at : outcome.placements) {  // it only grows where a tenant is placed
        uint64_t held = 0;
        for (size_t i = 0; i < workload.jobs.size(); ++i) {
            const Placement& each = outcome.placements[i];
            if (each.gpu == gpu && each.placed_ns <= at.placed_ns && each.ended_ns > at.placed_ns)
                held += workload.jobs[i].memory;
        }
        most = std::max(most, held);
    }
    return most;
}

TEST_CASE("fleet: no tenant is lost, and no GPU has more of them than its memory holds", "[fleet]") {
    const Workload workload = drawn(1);
    for (const Rule& each : kRules) {
        CAPTURE(each.name);
        const Outcome outcome = run_fleet(workload, "fifo", each);
        REQUIRE(outcome.placements.size() == workload.jobs.size());
        for (size_t i = 0; i < workload.jobs.size(); ++i) {
            const Placement& placement = outcome.placements[i];
            REQUIRE(placement.gpu.value() < workload.gpus);
            REQUIRE(placement.placed_ns >= workload.jobs[i].arrives_ns);
            // What it does takes no less than alone.
            REQUIRE(placement.ended_ns - placement.placed_ns >= workload.jobs[i].alone_ns - 1);
        }
        for (size_t gpu = 0; gpu < workload.gpus; ++gpu)
            CHECK(most_memory(workload, outcome, gpu) <= workload.gpu_memory);
        const Figures figures = figures_of(workload, outcome);
        CHECK(figures.placed == workload.jobs.size());
        CHECK(figures.waited > 0);  // else memory is not what this test needs it to be
        CHECK(figures.refused == 0);
        CHECK(outcome.gpus_in_use > 1);
        CHECK(outcome.gpus_in_use <= 8);
        CHECK(outcome.unusable_memory > 0);
        CHECK(outcome.unusable_memory < 1);
    }
}

TEST_CASE("fleet: a seed says all of a workload and of what becomes of it", "[fleet]") {
    const auto ends = [](const Workload& workload, const char* name) {
        std::vector<double> all;
        for (const Placement& each : run_fleet(workload, "priority", rule(name)).placements)
            all.push_back(each.ended_ns);
        return all;
    };
    const Workload one = drawn(1), same = drawn(1), other = drawn(2);
    CHECK(ends(one, "any") == ends(same, "any"));
    CHECK(ends(one, "profile") == ends(same, "profile"));
    CHECK(ends(one, "any") != ends(other, "any"));
}

TEST_CASE("fleet: load is the GPU time that comes, by what there is", "[fleet]") {
    const Workload workload = drawn(3);
    double gpu_ns = 0;
    for (const Job& each : workload.jobs)
        gpu_ns += workload.tenants[each.tenant].gpu_ns * static_cast<double>(each.rounds);
    const double there_ns = workload.jobs.back().arrives_ns * static_cast<double>(workload.gpus);
    CHECK(gpu_ns / there_ns == Approx(1.2).epsilon(0.2));  // exponential times: by chance
    CHECK(workload.tenants[0].demand() == Approx(1).epsilon(0.01));
    CHECK(workload.tenants[1].demand() == Approx(0.6).epsilon(0.01));  // 3 ms of 5: no pause behind the last
}

// Two that compute all the time, and two GPUs: each has one for itself, or both share one.
TEST_CASE("fleet: by profile a busy tenant has a GPU for itself where first fit makes two share", "[fleet]") {
    const Workload workload = workload_of({tenant_of("busy", 20, 0)}, {{0, 0}, {0, 1}}, 2);
    const Outcome first = run_fleet(workload, "fifo", rule("first-fit")),
                  profile = run_fleet(workload, "fifo", rule("profile"));
    CHECK(gpus_of(first) == std::vector<size_t>{0, 0});
    CHECK(gpus_of(profile) == std::vector<size_t>{0, 1});
    CHECK(figures_of(workload, profile).antt == Approx(1).epsilon(0.001));
    CHECK(figures_of(workload, first).antt == Approx(2).epsilon(0.05));
    CHECK(figures_of(workload, profile).stp == Approx(2).epsilon(0.06));
    CHECK(figures_of(workload, first).stp == Approx(1).epsilon(0.06));
}

// Best are the tenants that hardly work on one GPU with one busy tenant, and the other busy tenant alone.
TEST_CASE("fleet: by profile a busy tenant does not get another where others hardly work", "[fleet]") {
    const Workload workload = workload_of({tenant_of("idle", 5, 20), tenant_of("busy", 40, 0)},
                                          {{0, 0}, {1, 1}, {0, 2}, {1, 30}}, 2);
    CHECK(gpus_of(run_fleet(workload, "fifo", rule("profile"))) == std::vector<size_t>{0, 1, 0, 0});
}

TEST_CASE("fleet: by memory the emptiest GPU is taken, by first fit the first that holds it", "[fleet]") {
    const Workload workload = workload_of(
        {tenant_of("busy", 20, 0)}, {{0, 0, 50 * kG}, {0, 1, 20 * kG}, {0, 2, 40 * kG}, {0, 3, 5 * kG}}, 2);
    CHECK(gpus_of(run_fleet(workload, "fifo", rule("first-fit"))) == std::vector<size_t>{0, 0, 1, 0});
    CHECK(gpus_of(run_fleet(workload, "fifo", rule("memory"))) == std::vector<size_t>{0, 1, 1, 0});
}

TEST_CASE("fleet: what does not fit waits in the order in which it came; what never could is refused",
          "[fleet]") {
    const Workload workload = workload_of(
        {tenant_of("busy", 5, 0)}, {{0, 0, 60 * kG}, {0, 1, 70 * kG}, {0, 2, 10 * kG}, {0, 3, 81 * kG}}, 1);
    for (const Rule& each : kRules) {
        CAPTURE(each.name);
        const Outcome outcome = run_fleet(workload, "fifo", each);
        const std::vector<Placement>& all = outcome.placements;
        CHECK(all[1].placed_ns >= all[0].ended_ns);
        CHECK(all[2].placed_ns >= all[1].placed_ns);  // although it would have fitted
        CHECK_FALSE(all[3].gpu);
        const Figures figures = figures_of(workload, outcome);
        CHECK(figures.placed == 3);
        CHECK(figures.refused == 1);
        CHECK(figures.waited == 2);
        CHECK(outcome.unusable_memory == Approx(1 / 4.0));  // the 20 GiB left, to the second
    }
}

TEST_CASE("fleet: figures of a table", "[fleet]") {
    Workload workload =
        workload_of({tenant_of("busy", 5, 0)}, {{0, 0}, {0, 10}, {0, 20}, {0, 30, 90 * kG}}, 2);
    for (Job& each : workload.jobs) each.alone_ns = 10 * kMs;
    Outcome outcome;
    outcome.placements = {{0, 0, 20 * kMs}, {1, 10 * kMs, 20 * kMs}, {0, 24 * kMs, 60 * kMs}, {}};
    const Figures figures = figures_of(workload, outcome);
    CHECK(figures.placed == 3);
    CHECK(figures.refused == 1);
    CHECK(figures.waited == 1);
    CHECK(figures.mean_wait_ns == Approx(4 * kMs));
    CHECK(figures.antt == Approx((2 + 1 + 4) / 3.0));
    CHECK(figures.p50 == Approx(2));
    CHECK(figures.most == Approx(4));
    CHECK(figures.makespan_ns == Approx(60 * kMs));
    CHECK(figures.stp == Approx(0.5));
}

// Placed as `smt run --gpu any` places: the same function, of the same loads.
TEST_CASE("fleet: any is what smt run --gpu any does", "[fleet]") {
    const Tenant tenant = tenant_of("busy", 1, 0);
    std::vector<GpuView> gpus(3);
    gpus[0].load = {80 * kG, 80 * kG, 2, 0};
    gpus[1].load = {80 * kG, 10 * kG, 1, 0.9};
    gpus[2].load = {80 * kG, 20 * kG, 1, 0.2};
    std::vector<tools::GpuLoad> loads;
    for (const GpuView& each : gpus) loads.push_back(each.load);
    for (const uint64_t memory : {0 * kG, 15 * kG, 70 * kG})
        CHECK(rule("any").choose(gpus, tenant, memory) == tools::choose_gpu(loads, memory));
    CHECK_FALSE(rule("any").choose(gpus, tenant, 81 * kG));
    gpus[0].load.free_bytes = kG;
    CHECK_FALSE(rule("any").choose(gpus, tenant, 70 * kG));  // it waits, instead of there
}

TEST_CASE("fleet: a measured pair counts by its rate, another by the time that it has the GPU", "[fleet]") {
    Tenant one = tenant_of("one", 1, 0), other = tenant_of("other", 2, 1);
    CHECK(delay_by(one, other) == Approx(other.demand()));
    const auto profile = [](uint64_t identity, std::vector<Beside> beside) {
        auto made = std::make_shared<Profile>();
        made->identity = identity;
        made->beside = std::move(beside);
        return made;
    };
    // Two combinations: in the better one they keep 0.8 and 0.9 of their rates.
    one.streams[0].kernel.profile = profile(7, {{9, 1, 3, 0.5}, {9, 2, 2, 0.8}});
    other.streams[0].kernel.profile = profile(9, {{7, 3, 1, 0.6}, {7, 2, 2, 0.9}});
    CHECK(delay_by(one, other) == Approx(1 / 0.8 - 1));
    CHECK(delay_by(other, one) == Approx(1 / 0.9 - 1));
    one.streams[0].kernel.profile = profile(8, {});
    CHECK(delay_by(one, other) == Approx(other.demand()));
}

TEST_CASE("fleet: a recording's tenants do in virtual time what they did", "[fleet]") {
    TenantReader reader;
    reader.read(SMT_RECORDINGS "/two_tenants.jsonl");
    const std::vector<Tenant> tenants = reader.tenants();
    REQUIRE(reader.device().multiprocessors == 8);
    REQUIRE(tenants.size() == 2);
    CHECK(tenants[0].name == "high");
    CHECK(tenants[1].name == "low");
    for (const Tenant& each : tenants) {
        CHECK(each.alone_ns > 0);
        CHECK(each.demand() > 0);
        CHECK(each.demand() <= static_cast<double>(each.streams.size()));
    }
    CHECK(tenants[0].streams.size() == 2);
    CHECK(tenants[0].streams[0].kernel.priority == 1);
    CHECK(tenants[0].streams[0].kernel.blocks == 40);
}

TEST_CASE("fleet: launches, pauses and times of a stream as recorded", "[fleet]") {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/recording";
    std::ofstream file(path);
    file << policy_line("fifo") << "\n";
    Kernel work = kernel(5, 16, nth_of(kSm, 2));
    work.session = 3;
    work.tenant = "alice";
    work.ctas_per_sm = 2;
    const auto note = [&](Duration at, bool there) {
        Snapshot snapshot{device(kSms), {}};
        if (there) snapshot.kernels = {work};
        file << record_line(snapshot, kBegin + at, {}) << "\n";
    };
    note(0ms, true);
    note(2ms, true);  // 2 ms at work
    note(2ms, false);
    note(5ms, true);  // behind a pause of 3 ms
    note(9ms, true);  // 4 ms at work
    ++work.launch;
    note(9ms, true);  // the third launch, at once
    note(12ms, true);
    file.close();

    TenantReader reader;
    reader.read(path);
    const std::vector<Tenant> tenants = reader.tenants();
    REQUIRE(tenants.size() == 1);
    REQUIRE(tenants[0].streams.size() == 1);
    const Program& stream = tenants[0].streams[0];
    CHECK(tenants[0].name == "alice");
    CHECK(stream.launches == 3);
    CHECK(stream.gap_ns == Approx(3 * kMs / 3));
    CHECK(stream.alone_ns == Approx(9 * kMs / 3));     // nothing was predicted
    CHECK(stream.work.block_ns == Approx(1.5 * kMs));  // 16 blocks, 8 at once
    CHECK(tenants[0].alone_ns == Approx(11 * kMs).epsilon(0.01));

    std::ofstream(path) << policy_line("fifo") << "\n"
                        << record_line({device(kSms + 1), {work}}, kBegin, {}) << "\n";
    CHECK_THROWS_WITH(reader.read(path), Contains(path) && Contains("5 multiprocessors"));
}

}  // namespace
}  // namespace smt::tests
