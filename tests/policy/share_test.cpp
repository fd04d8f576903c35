// Share: weights, work conservation and bounds, as tables and in virtual time.
#include <cstdio>
#include <numeric>

#include "tests/policy/virtual_gpu.h"

using namespace smt::tests;

namespace {

constexpr double kMs = 1e6;  // ns
constexpr int kSms = 8;

Kernel received(uint64_t id, double weight, Duration so_far) {
    Kernel made = kernel(id, 100000);
    made.session = static_cast<uint32_t>(id);
    made.weight = weight;
    made.received = so_far;
    made.preemption = 50us;
    static uint32_t corrections = 0;
    made.corrections = ++corrections;  // it is measured all the time
    return made;
}

// CTAs that take all of a multiprocessor's pipeline if two share it: both take turns, or both get half.
Program program(uint64_t id, double weight, double alone_ms = 1, double block_us = 20) {
    constexpr uint64_t kCtas = 8;  // on each multiprocessor, alone
    Program made;
    const auto rounds = static_cast<uint64_t>(alone_ms * 1000 / block_us);
    made.kernel = kernel(id, rounds * kSms * kCtas, nth_of(kSm, kCtas * 2));
    made.kernel.session = static_cast<uint32_t>(id);
    made.kernel.weight = weight;
    made.kernel.ctas_per_sm = static_cast<int>(kCtas);
    made.work = {block_us * 1000, 1.0 / (2 * kCtas), 0, 0};
    made.launches = kEndless;
    return made;
}

// What a launch takes when no other program is there.
double alone(Program program) {
    program.launches = 1;
    VirtualGpu gpu(device(kSms));
    gpu.add(program);
    const auto fifo = make_policy("fifo");
    gpu.run(*fifo, 1e12);
    return gpu.now_ns();
}

Program told(Program program) {
    program.alone_ns = alone(program);
    return program;
}

// Progress of each program in a window of time, in time alone, as part of the window.
std::vector<double> progress(VirtualGpu& gpu, Policy& policy, double window_ns) {
    for (Program& each : gpu.programs) each.blocks_before = each.blocks;
    gpu.run(policy, gpu.now_ns() + window_ns);
    std::vector<double> parts;
    for (const Program& each : gpu.programs)
        parts.push_back(static_cast<double>(each.blocks - each.blocks_before) /
                        static_cast<double>(each.kernel.blocks) * each.alone_ns / window_ns);
    return parts;
}

double sum(const std::vector<double>& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

}  // namespace

TEST_CASE("share: a tenant ahead by the lead waits until the other has caught up", "[policy]") {
    const auto policy = make_share();
    const auto at = [&](Duration now, Kernel one, Kernel two) {
        return said(policy->decide({device(4), {std::move(one), std::move(two)}}, kBegin + now));
    };
    CHECK(at(0ms, received(1, 1, 0ms), received(2, 1, 0ms)).empty());
    CHECK(at(2ms, received(1, 1, 1500us), received(2, 1, 500us)).empty());
    CHECK(at(4ms, received(1, 1, 3ms), received(2, 1, 900us)) == Said{{1, "wait"}});
    CHECK(at(5ms, waiting(received(1, 1, 3ms)), received(2, 1, 2ms)).empty());
    CHECK(at(6ms, waiting(received(1, 1, 3ms)), received(2, 1, 3ms)) == Said{{1, "run"}});
}

TEST_CASE("share: what is under way counts", "[policy]") {
    const auto policy = make_share();
    policy->decide({device(4), {received(1, 1, 0ms), received(2, 1, 0ms)}}, kBegin);
    Kernel long_one = received(1, 1, 0ms);
    long_one.receiving = 3ms;
    CHECK(said(policy->decide({device(4), {long_one, received(2, 1, 0ms)}}, kBegin + 3ms)) ==
          Said{{1, "wait"}});
}

TEST_CASE("share: the lead is ten times what a stop takes", "[policy]") {
    const auto policy = make_share({.resume = 0us});
    const auto at = [&](Duration now, Duration ahead) {
        Kernel slow = received(1, 1, ahead);
        slow.preemption = 1ms;
        return said(policy->decide({device(4), {slow, received(2, 1, 0ms)}}, kBegin + now));
    };
    CHECK(at(0ms, 0ms).empty());
    CHECK(at(10ms, 9900us).empty());
    CHECK(at(11ms, 10100us) == Said{{1, "wait"}});
}

TEST_CASE("share: idle time gives no credit", "[policy]") {
    const auto policy = make_share();
    const Duration total = 100ms;
    policy->decide({device(4), {received(1, 1, 0ms), received(2, 1, 0ms)}}, kBegin);
    policy->decide({device(4), {received(1, 1, 0ms)}}, kBegin + 10us);
    policy->decide({device(4), {received(1, 1, total)}}, kBegin + total);
    // back after 100 ms: not 100 ms behind
    CHECK(said(policy->decide({device(4), {received(1, 1, total), received(2, 1, 0ms)}}, kBegin + total))
              .empty());
    CHECK(said(policy->decide({device(4), {received(1, 1, total + 3ms), received(2, 1, 100us)}},
                              kBegin + total + 3ms)) == Said{{1, "wait"}});
}

TEST_CASE("share: a tenant without work holds no other back for longer than the gap", "[policy]") {
    const auto policy = make_share();
    policy->decide({device(4), {received(1, 1, 0ms), received(2, 1, 0ms)}}, kBegin);
    REQUIRE(said(policy->decide({device(4), {received(1, 1, 3ms), received(2, 1, 0ms)}}, kBegin + 3ms)) ==
            Said{{1, "wait"}});
    const Kernel held = waiting(received(1, 1, 3ms));
    const Decision gone = policy->decide({device(4), {held}}, kBegin + 3100us);
    CHECK(said(gone).empty());
    REQUIRE(gone.again);
    CHECK(*gone.again == 100us);
    CHECK(said(policy->decide({device(4), {held}}, kBegin + 3200us)) == Said{{1, "run"}});
}

TEST_CASE("share: what a tenant cannot use is written off", "[policy]") {
    const auto policy = make_share();
    policy->decide({device(4), {received(1, 1, 0ms), received(2, 1, 0ms)}}, kBegin);
    REQUIRE(said(policy->decide({device(4), {received(1, 1, 3ms), received(2, 1, 0ms)}}, kBegin + 3ms)) ==
            Said{{1, "wait"}});
    const Kernel held = waiting(received(1, 1, 3ms));
    const auto at = [&](Duration now) {  // the other one gets nothing done
        return said(policy->decide({device(4), {held, received(2, 1, 0ms)}}, kBegin + now));
    };
    CHECK(at(3100us).empty());
    CHECK(at(9000us).empty());
    CHECK(at(9100us) == Said{{1, "run"}});
}

TEST_CASE("share: a tenant of which much is guessed is alone for a while", "[policy]") {
    const auto policy = make_share({.guessed = 0.1, .trial = 5ms, .between_trials = 200ms});
    const auto at = [&](Duration now, Duration guessed, bool stopped) {
        Kernel known = received(1, 1, now / 2), other = received(2, 1, now / 2);
        other.guessed = guessed;
        other.corrections = 1;  // nothing is measured in trials
        return policy->decide({device(4), {stopped ? waiting(known) : known, other}}, kBegin + now);
    };
    CHECK(said(at(0ms, 0ms, false)).empty());
    CHECK(said(at(9ms, 400us, false)).empty());
    const Decision begins = at(10ms, 5ms, false);
    CHECK(said(begins) == Said{{1, "wait"}});
    CHECK(*begins.again <= 5ms);
    CHECK(said(at(14ms, 5ms, true)).empty());
    CHECK(said(at(15ms, 5ms, true)) == Said{{1, "run"}});
    CHECK(said(at(209ms, 100ms, false)).empty());
    CHECK(said(at(210ms, 100ms, false)) == Said{{1, "wait"}});
    CHECK(said(at(215ms, 100ms, true)) == Said{{1, "run"}});
    CHECK(said(at(609ms, 300ms, false)).empty());  // twice as late
    CHECK(said(at(610ms, 300ms, false)) == Said{{1, "wait"}});
}

TEST_CASE("share: unmanaged work is held back, too", "[policy]") {
    const auto policy = make_share();
    Kernel unmanaged = received(1, 1, 0ms);
    unmanaged.managed = false;
    policy->decide({device(4), {unmanaged, received(2, 1, 0ms)}}, kBegin);
    unmanaged.received = 3ms;
    CHECK(said(policy->decide({device(4), {unmanaged, received(2, 1, 0ms)}}, kBegin + 3ms)) ==
          Said{{1, "wait"}});
}

TEST_CASE("share: progress is as weights are, within 2 %, in virtual time", "[policy]") {
    for (const double block_us : {5.0, 20.0, 100.0}) {
        for (const double weight : {1.0, 2.0, 3.0}) {
            INFO("blocks of " << block_us << " us, " << weight);
            VirtualGpu gpu(device(kSms));
            gpu.add(told(program(1, weight, 1, block_us)));
            gpu.add(told(program(2, 1, 0.7, block_us)));
            const auto policy = make_share();
            const std::vector<double> parts = progress(gpu, *policy, 2000 * kMs);
            std::printf("share, blocks of %.0f us, %.0f:1: %.3f:1 of progress, %.3f together\n", block_us,
                        weight, parts[0] / parts[1], sum(parts));
            CHECK(parts[0] / parts[1] == Approx(weight).epsilon(0.02));
            CHECK(sum(parts) > 0.95);
        }
    }
}

namespace {

// A few CTAs, so that eight such programs fit side by side: they slow each other down, and none waits for a
// place.
Program small(uint64_t id, double weight, double gap_us = 0) {
    Program made = program(id, weight);
    made.kernel.blocks = kSms * 2;
    made.kernel.cta = nth_of(kSm, 16);
    made.work = {100'000, 0.25, 0, 0};
    made.gap_ns = gap_us * 1000;
    return told(made);
}

}  // namespace

TEST_CASE("share: equals that overlap are never stopped, and gain what there is to gain", "[policy]") {
    VirtualGpu gpu(device(kSms)), free(device(kSms));
    for (uint64_t id = 1; id <= 4; ++id) gpu.add(small(id, 1)), free.add(small(id, 1));
    const auto policy = make_share(), fifo = make_policy("fifo");
    const std::vector<double> parts = progress(gpu, *policy, 200 * kMs);
    CHECK(sum(parts) == Approx(sum(progress(free, *fifo, 200 * kMs))).epsilon(0.001));
}

TEST_CASE("share: eight tenants, none starves, and each has its part", "[policy]") {
    VirtualGpu gpu(device(kSms));
    for (uint64_t id = 1; id <= 8; ++id) gpu.add(small(id, 1 + static_cast<double>(id % 2)));
    const auto policy = make_share();
    progress(gpu, *policy, 100 * kMs);
    for (int second = 0; second < 4; ++second) {
        const std::vector<double> parts = progress(gpu, *policy, 500 * kMs);
        for (size_t i = 0; i < parts.size(); ++i) {
            INFO("tenant " << i + 1 << " of weight " << gpu.programs[i].kernel.weight << ": " << parts[i]);
            CHECK(parts[i] / gpu.programs[i].kernel.weight == Approx(sum(parts) / 12).epsilon(0.05));
        }
    }
}

TEST_CASE("share: a tenant that waits for its host does not keep the GPU from the other", "[policy]") {
    // Alone it has work a fifth of the time, so its weight does not matter.
    VirtualGpu gpu(device(kSms)), free(device(kSms));
    for (VirtualGpu* each : {&gpu, &free}) {
        each->add(small(1, 3, 440));
        each->add(small(2, 1));
    }
    const auto policy = make_share(), fifo = make_policy("fifo");
    const std::vector<double> parts = progress(gpu, *policy, 1000 * kMs);
    const std::vector<double> most = progress(free, *fifo, 1000 * kMs);
    std::printf("share, a tenant that waits for its host: %.3f and %.3f, without a policy %.3f and %.3f\n",
                parts[0], parts[1], most[0], most[1]);
    CHECK(sum(parts) > 0.95 * sum(most));
    CHECK(parts[0] > 0.95 * most[0]);
}

TEST_CASE("share: a tenant that others do not slow down holds none back", "[policy]") {
    VirtualGpu gpu(device(kSms)), free(device(kSms));
    for (VirtualGpu* each : {&gpu, &free}) {
        each->add(small(1, 3));  // both have all that they can use
        each->add(small(2, 1));
    }
    const auto policy = make_share(), fifo = make_policy("fifo");
    progress(gpu, *policy, 100 * kMs);
    progress(free, *fifo, 100 * kMs);
    CHECK(sum(progress(gpu, *policy, 400 * kMs)) > 0.98 * sum(progress(free, *fifo, 400 * kMs)));
}

TEST_CASE("share: a tenant that comes late gets its part from then on, and no more", "[policy]") {
    VirtualGpu gpu(device(kSms));
    gpu.add(told(program(1, 1)));
    Program late = told(program(2, 1));
    late.arrives_ns = 500 * kMs;
    gpu.add(late);
    const auto policy = make_share();
    CHECK(progress(gpu, *policy, 500 * kMs)[0] > 0.95);
    const std::vector<double> parts = progress(gpu, *policy, 200 * kMs);
    CHECK(parts[0] / parts[1] == Approx(1).epsilon(0.05));
}

TEST_CASE("share: what others receive in a tenant's pauses is made up for", "[policy]") {
    for (const double weight : {2.0, 3.0}) {
        for (const auto& [alone_ms, pause_us] : {std::pair{5.0, 150.0}, {20.0, 1000.0}}) {
            VirtualGpu gpu(device(kSms));
            Program heavy = program(1, weight, alone_ms);
            heavy.gap_ns = pause_us * 1000;
            gpu.add(told(heavy));
            gpu.add(told(program(2, 1)));
            const auto policy = make_share();
            const std::vector<double> parts = progress(gpu, *policy, 2000 * kMs);
            std::printf("share, pauses of %.0f us, %.0f:1: %.3f:1 of progress, %.3f together\n", pause_us,
                        weight, parts[0] / parts[1], sum(parts));
            CHECK(parts[0] / parts[1] == Approx(weight).epsilon(0.02));
            CHECK(sum(parts) > 0.97);
        }
    }
}
