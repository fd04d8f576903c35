// What each policy is worth, in virtual time: the papers' claims as bounds.
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

#include "profiler/models/saturation.h"
#include "tests/policy/virtual_gpu.h"

using namespace smt::tests;

namespace {

constexpr int kSms = 16;
constexpr double kMs = 1e6, kLong = 100e9;  // ns

// Warps of a kernel as Kernelet's model has them, and what they ask of a multiprocessor when no other
// kernel is on it.
const models::Multiprocessor kModel{4, {.latency = 600, .requests_per_cycle = 0.14, .coalesced_requests = 4}};
Device modelled() {
    Device made = device(kSms);
    made.model = kModel;
    return made;
}

struct Character {
    const char* name;
    uint32_t parts;       // CTAs that fill a multiprocessor
    double memory_ratio;  // R_m
    double instructions;  // of a block's warps
};
constexpr Character kComputes{"computes", 8, 0.002, 200'000}, kLoads{"loads", 8, 0.1, 40'000},
    kWaits{"waits", 8, 0.03, 30'000}, kLarge{"large", 2, 0.01, 400'000},
    kBetween{"between", 4, 0.006, 150'000};

Work work_of(const Character& of) {
    const double warps = 64.0 / of.parts,
                 cycles = 1 + of.memory_ratio * kModel.memory.latency;  // of one instruction of one warp
    const double pipeline = warps / (kModel.warp_schedulers * cycles);
    const double memory = warps * of.memory_ratio * kModel.memory.coalesced_requests /
                          (cycles * kModel.memory.requests_per_cycle);
    const double slower = std::max({1.0, pipeline, memory});  // one CTA by itself wants more than there is
    return {of.instructions / warps * cycles * slower, pipeline / slower, memory / slower, 1 - 1 / cycles};
}

Program program(uint64_t id, const Character& of, uint64_t rounds) {
    Program made;
    made.kernel = kernel(id, rounds * kSms * of.parts, nth_of(kSm, of.parts));
    made.work = work_of(of);
    return made;
}

// So many CTAs of each on every multiprocessor, whatever else happens.
class Fixed final : public Policy {
public:
    explicit Fixed(std::map<uint64_t, Quota> quotas)
        : Policy({"fixed", Stops::kAny}), quotas_(std::move(quotas)) {}
    void want(const Snapshot& snapshot, TimePoint, Wanted& wanted) override {
        for (const Kernel& each : snapshot.kernels) wanted.run(each, quotas_.at(each.id), 0, "fixed");
    }

private:
    std::map<uint64_t, Quota> quotas_;
};

struct Outcome {
    std::vector<double> ends_ns;  // of each program's last launch
    int most_used = 0;
    double total() const { return *std::max_element(ends_ns.begin(), ends_ns.end()); }
};

Outcome run(Policy& policy, const std::vector<Program>& programs) {
    VirtualGpu gpu(modelled());
    for (const Program& each : programs) gpu.add(each);
    gpu.run(policy, kLong);
    Outcome outcome;
    for (const Program& each : gpu.programs) {
        REQUIRE(each.ends_ns.size() == each.launches);
        outcome.ends_ns.push_back(each.ends_ns.back());
    }
    outcome.most_used = gpu.most_used();
    return outcome;
}

// One launch of it, with no other tenant there.
double alone(const Program& of) {
    const auto fifo = make_policy("fifo");
    Program now = of;
    now.ends_ns.clear();
    now.kernel.blocks_done = 0;
    now.kernel.last_taken = false;
    now.arrives_ns = 0;
    now.launches = 1;
    return run(*fifo, {now}).total();
}

double alone(const Program& of, const Quota& quota) {
    Fixed fixed({{of.kernel.id, quota}});
    return run(fixed, {of}).total();
}

// What the profiler would measure of it.
std::shared_ptr<const Profile> measure(const Program& of, const Character& character, double loss = 0.03) {
    Profile made;
    made.blocks = of.kernel.blocks;
    std::vector<models::SaturationPoint> points;
    for (int ctas = 1; ctas <= static_cast<int>(character.parts); ++ctas) {
        Quota one(kSms);
        one[0] = static_cast<uint8_t>(ctas);
        const double all_ns = alone(of, even_quota(ctas)), one_ns = alone(of, one);
        made.configurations.push_back({ctas, all_ns});
        points.push_back({ctas, static_cast<double>(of.kernel.blocks) / one_ns,
                          static_cast<double>(of.kernel.blocks) / all_ns});
    }
    made.configurations = models::prune(made.configurations);
    made.footprint = models::footprint(points, kSms, loss);
    made.slice_overhead = std::chrono::microseconds(10);
    made.preemption = nanoseconds(of.work.block_ns);
    const Work& work = of.work;
    made.mix =
        Mix{{std::min(1.0, work.pipeline * character.parts), std::min(1.0, work.memory * character.parts)},
            character.memory_ratio,
            0,
            character.instructions};
    return std::make_shared<Profile>(made);
}

Program profiled(uint64_t id, const Character& of, uint64_t rounds) {
    Program made = program(id, of, rounds);
    made.kernel.profile = measure(made, of);
    made.kernel.predicted = nanoseconds(alone(made));
    return made;
}

}  // namespace

TEST_CASE("an urgent short kernel behind a long one has four fifths of the speed-up that there is to have",
          "[policy]") {
    for (const Character& large : {kComputes, kLoads, kWaits, kLarge, kBetween}) {
        for (const char* name : {"hpf", "priority"}) {
            Program behind = profiled(1, large, 60), urgent = profiled(2, kWaits, 30);
            urgent.kernel.priority = 1;
            urgent.arrives_ns = alone(behind) * 0.1237;  // in the middle of a block
            const double by_itself = alone(urgent);
            const auto fifo = make_policy("fifo"), policy = make_policy(name);
            const double without = run(*fifo, {behind, urgent}).ends_ns[1] - urgent.arrives_ns;
            const double with = run(*policy, {behind, urgent}).ends_ns[1] - urgent.arrives_ns;
            std::printf(
                "%-8s behind %-9s %8.3f ms, %7.3f under %s, %7.3f alone: %.2f of the ideal speed-up\n",
                "waits", large.name, without / kMs, with / kMs, name, by_itself / kMs, by_itself / with);
            INFO(name << " behind " << large.name);
            CHECK(without > 2 * by_itself);  // or there would be nothing to gain
            CHECK(by_itself / with >= 0.8);
        }
    }
}

TEST_CASE("fair: shares of 2:1 and 3:1 are kept within 2 %", "[policy]") {
    for (const Character& of : {kComputes, kLoads, kLarge}) {
        for (const double weight : {2.0, 3.0}) {
            Program favoured = profiled(1, of, 20), other = profiled(2, of, 20);
            favoured.kernel.weight = weight;
            favoured.launches = other.launches = kEndless;
            VirtualGpu gpu(modelled());
            gpu.add(favoured);
            gpu.add(other);
            const auto fair = make_policy("fair");
            gpu.run(*fair, 2000 * kMs);
            const double ratio =
                static_cast<double>(gpu.programs[0].blocks) / static_cast<double>(gpu.programs[1].blocks);
            std::printf("fair, %-9s %.0f:1: %.3f\n", of.name, weight, ratio);
            INFO(of.name);
            CHECK(ratio == Approx(weight).epsilon(0.02));
        }
    }
}

TEST_CASE("greedy is never worse than one after the other by more than 2 %, and better where kernels differ",
          "[policy]") {
    const std::vector<Character> all{kComputes, kLoads, kWaits, kLarge, kBetween};
    for (size_t a = 0; a < all.size(); ++a) {
        for (size_t b = a; b < all.size(); ++b) {
            const Program first = profiled(1, all[a], 60), second = profiled(2, all[b], 60);
            const double sequential = alone(first) + alone(second);
            const auto greedy = make_policy("greedy");
            const double together = run(*greedy, {first, second}).total();
            std::printf("greedy, %-9s and %-9s %8.3f ms of %8.3f: %.3f\n", all[a].name, all[b].name,
                        together / kMs, sequential / kMs, together / sequential);
            INFO(all[a].name << " and " << all[b].name);
            CHECK(together / sequential <= 1.02);
        }
    }
    const Program computes = profiled(1, kComputes, 60), loads = profiled(2, kLoads, 60);
    const auto greedy = make_policy("greedy");
    CHECK(run(*greedy, {computes, loads}).total() < 0.9 * (alone(computes) + alone(loads)));
}

TEST_CASE("compact: a saturating kernel leaves a quarter of the multiprocessors free for 3 % of its time",
          "[policy]") {
    Program loads = profiled(1, kLoads, 60);
    const auto compact = make_policy("compact");
    const Outcome outcome = run(*compact, {loads});
    std::printf("compact, loads: %d of %d multiprocessors, %.3f of its time\n", outcome.most_used, kSms,
                outcome.total() / alone(loads));
    CHECK(outcome.most_used <= kSms * 3 / 4);
    CHECK(outcome.total() <= 1.03 * alone(loads));
}

// ---- slice: against every pair and ratio that there is

namespace {

// What gets done while all of them have blocks: of each in units of what it gets done alone, in all. 1 is
// what taking turns gives.
double throughput(Policy& policy, const std::vector<Program>& queue) {
    constexpr double kWindow = 300 * kMs;
    constexpr uint64_t kLonger = 1000;
    VirtualGpu gpu(modelled());
    for (Program each : queue) {
        each.kernel.blocks *= kLonger;
        each.kernel.predicted = *each.kernel.predicted * kLonger;
        gpu.add(each);
    }
    gpu.run(policy, kWindow);
    double sum = 0;
    for (size_t i = 0; i < queue.size(); ++i)
        sum += static_cast<double>(gpu.programs[i].blocks) / static_cast<double>(queue[i].kernel.blocks) *
               alone(queue[i]) / kWindow;
    return sum;
}

double best_throughput(const std::vector<Program>& queue) {
    const Resources limits = limits_of(modelled());
    double best = 1;
    for (size_t first = 0; first < queue.size(); ++first) {
        for (size_t second = first + 1; second < queue.size(); ++second) {
            for (int a = 1; a <= most_ctas(queue[first].kernel, limits); ++a) {
                Resources free = limits;
                take(free, queue[first].kernel.cta, a);
                const int b = fitting(free, queue[second].kernel.cta);
                if (b == 0) continue;
                Fixed fixed(
                    {{queue[first].kernel.id, even_quota(a)}, {queue[second].kernel.id, even_quota(b)}});
                best = std::max(best, throughput(fixed, {queue[first], queue[second]}));
            }
        }
    }
    return best;
}

}  // namespace

TEST_CASE("slice: within 5 % of the best pair and ratio that there are", "[policy]") {
    const std::vector<std::vector<Character>> queues{{kComputes, kLoads, kLarge, kWaits},
                                                     {kComputes, kLoads, kBetween, kLoads},
                                                     {kLarge, kLoads, kComputes, kBetween},
                                                     {kWaits, kBetween, kLarge}};
    const AgingKnobs endless{.starvation_timeout = std::chrono::hours(1)};  // the best pair only
    for (const auto& characters : queues) {
        std::vector<Program> queue;
        for (const Character& each : characters) queue.push_back(profiled(queue.size() + 1, each, 200));
        const double best = best_throughput(queue);
        const auto slice = make_slice({.aging = endless});
        const double chosen = throughput(*slice, queue);
        std::printf("slice: throughput %.3f, best %.3f: %.3f of it\n", chosen, best, chosen / best);
        CHECK(chosen >= 0.95 * best);
    }
}
