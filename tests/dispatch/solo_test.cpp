// Solo sessions: a tenant alone with work launches without a decision, and no other tenant's arrival is
// missed.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/dispatch/quiesce.h"
#include "tests/dispatch/two_tenants.h"

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;
using tests::comes;
using tests::tenant_of;
using tests::TwoTenants;
using Sessions = std::set<uint32_t>;

// Lets everything run, and keeps which sessions had work at each decision, and in which thread it was made.
class Watch final : public schedule::Policy {
public:
    struct Seen {
        std::thread::id thread;
        Sessions sessions;
    };
    Watch() : Policy({"watch", Stops::kAny}) {}
    bool leaves_alone() const override { return true; }
    void want(const schedule::Snapshot& snapshot, schedule::TimePoint, schedule::Wanted& wanted) override {
        Seen seen{std::this_thread::get_id(), {}};
        for (const schedule::Kernel& kernel : snapshot.kernels) {
            seen.sessions.insert(kernel.session);
            wanted.resume(kernel, "runs");
        }
        const std::lock_guard lock(mutex_);
        seen_.push_back(std::move(seen));
    }
    std::vector<Seen> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(seen_, {});
    }

private:
    std::mutex mutex_;
    std::vector<Seen> seen_;
};

}  // namespace

TEST_CASE("solo: a tenant alone with work asks once, however often it launches", "[solo]") {
    constexpr uint64_t kLaunches = 500;
    for (const char* policy : {"priority", "share", "fair"}) {
        for (const int priority : {-1, 1}) {
            for (const bool unmanaged : {false, true}) {
                INFO(policy << ", priority " << priority << ", unmanaged " << unmanaged);
                TwoTenants it(policy, priority);
                it.pass(2s);  // until an urgent tenant counts as new, streams of others are confined
                for (uint64_t i = 0; i < kLaunches; ++i) {
                    REQUIRE((unmanaged ? it.launch_unmanaged(*it.first) : it.launch(*it.first)) ==
                            CUDA_SUCCESS);
                    it.end(*it.first);
                }
                const Begins::Counts begins = it.dispatcher.begins();
                CHECK(begins.asked == 1);
                CHECK(begins.unasked == kLaunches - 1);
            }
        }
    }
}

TEST_CASE("solo: under policies that decide on a tenant's own kernels each launch asks", "[solo]") {
    for (const char* policy : {"hpf", "greedy", "compact"}) {
        INFO(policy);
        TwoTenants it(policy);
        for (int i = 0; i < 20; ++i) {
            REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
            it.end(*it.first);
        }
        CHECK(it.dispatcher.begins().asked == 20);
        CHECK(it.dispatcher.begins().unasked == 0);
    }
}

TEST_CASE("solo: another tenant's launch ends the session, and its end begins another one", "[solo]") {
    TwoTenants it(std::make_unique<Watch>());
    const auto asked = [&] { return it.dispatcher.begins().asked; };
    REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
    CHECK(it.one->free.load());
    REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
    CHECK(!it.one->free.load());
    it.end(*it.first);
    it.end(*it.second);
    const uint64_t before = asked();
    REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
    it.end(*it.second);
    CHECK(asked() > before);
    it.pass(1ms);  // the other one is not expected back
    CHECK(comes([&] {
        REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
        it.end(*it.second);
        return it.two->free.load();
    }));
}

TEST_CASE("solo: of a launch and another tenant's arrival one sees the other", "[solo]") {
    constexpr int kRounds = 5'000, kIdle = 32, kMoments = 64, kOver = kRounds + 1;
    auto policy = std::make_unique<Watch>();
    Watch& watch = *policy;
    TwoTenants it(std::move(policy));
    // To look at them gives a launch time to come in between.
    std::vector<std::unique_ptr<ManagedStream>> idle;
    for (int i = 0; i < kIdle; ++i) idle.push_back(it.open(it.one));
    using Clock = std::chrono::steady_clock;
    std::atomic<int> begun{0}, done{0};
    std::atomic<Clock::duration> took{10us};  // the arrival, usually
    const auto await = [](const std::atomic<int>& word, int least) {
        for (int looks = 0; word.load() < least;) {
            if (++looks % 4096 == 0) std::this_thread::yield();
        }
    };
    std::thread::id other_thread;
    std::thread other([&] {
        other_thread = std::this_thread::get_id();
        for (int round = 1; await(begun, round), begun != kOver; ++round) {
            const Clock::time_point arrives = Clock::now();
            it.launch(*it.second);
            took = (7 * took.load() + std::min<Clock::duration>(Clock::now() - arrives, 100us)) / 8;
            done = round;
        }
    });
    int missed = 0, unasked = 0, not_alone = 0;
    for (int round = 1; round <= kRounds; ++round) {
        it.launch(*it.first);
        it.end(*it.first);
        not_alone += !it.one->free.load();
        watch.take();
        const uint64_t before = it.dispatcher.begins().unasked;
        // The launch is made at all moments of the arrival.
        const Clock::time_point launches = Clock::now() + took.load() * (round % kMoments) / kMoments * 3 / 2;
        begun = round;
        while (Clock::now() < launches) __builtin_ia32_pause();
        it.launch(*it.first);
        await(done, round);
        unasked += it.dispatcher.begins().unasked != before;
        const std::vector<Watch::Seen> seen = watch.take();
        missed += std::none_of(seen.begin(), seen.end(), [&](const Watch::Seen& each) {
            const bool ours = each.thread == std::this_thread::get_id() || each.thread == other_thread;
            return ours && each.sessions == Sessions{1, 2};
        });
        it.end(*it.first);
        it.end(*it.second);
    }
    begun = kOver;
    other.join();
    INFO(unasked << " of " << kRounds << " launches came first");
    CHECK(not_alone == 0);
    CHECK(missed == 0);
}

TEST_CASE("solo: the policy hears of work that is over before another tenant arrives", "[solo]") {
    auto policy = std::make_unique<Watch>();
    Watch& watch = *policy;
    TwoTenants it(std::move(policy));
    for (int round = 0; round < 200; ++round) {
        it.launch(*it.first);
        it.end(*it.first);
        REQUIRE(it.one->free.load());
        REQUIRE(comes([&] { return !it.first->unheard(); }));
        watch.take();
        const uint64_t before = it.dispatcher.begins().unasked;
        it.launch(*it.first);
        REQUIRE(it.dispatcher.begins().unasked == before + 1);
        it.end(*it.first);
        it.launch(*it.second);
        std::vector<Sessions> seen;
        for (const Watch::Seen& each : watch.take()) seen.push_back(each.sessions);
        const auto heard = std::find(seen.begin(), seen.end(), Sessions{1});
        REQUIRE(heard != seen.end());
        REQUIRE(std::find(heard, seen.end(), Sessions{2}) != seen.end());
        it.end(*it.second);
    }
}

TEST_CASE("solo: an urgent tenant has its idle grace period also for launches that did not ask", "[solo]") {
    TwoTenants it("priority", 1);
    it.pass(1s);
    for (int i = 0; i < 5; ++i) {
        REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
        it.pass(30us);
        it.end(*it.first);
        it.pass(20us);
    }
    CHECK(it.dispatcher.begins().unasked == 4);
    const size_t launches = it.gpu.launches;
    REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
    schedule::Kernel kernel;
    REQUIRE(it.second->describe(&kernel));
    CHECK(kernel.state == schedule::Kernel::State::kWaiting);
    CHECK(it.gpu.launches == launches);
    it.pass(200us);
    CHECK(comes([&] { return it.gpu.launches == launches + 1; }));
}

TEST_CASE("solo: GPU time is received for launches that did not ask, and not in between", "[solo]") {
    TwoTenants it("share");
    for (int i = 0; i < 100; ++i) {
        REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
        it.pass(10us);
        it.end(*it.first);
        it.pass(90us);
    }
    CHECK(it.dispatcher.begins().unasked == 99);
    CHECK(it.one->received.ns == 1'000'000);
    CHECK(it.one->received.guessed_ns == 0);
}

TEST_CASE("solo: a stream that has begun without a question is looked at by the dispatcher's thread",
          "[solo]") {
    auto policy = std::make_unique<Watch>();
    Watch& watch = *policy;
    TwoTenants it(std::move(policy));
    it.launch(*it.first);
    it.end(*it.first);
    it.device.rests_long = true;
    for (int round = 0; round < 20; ++round) {
        REQUIRE(comes([&] { return it.device.sleeps.load(); }));
        watch.take();
        it.launch(*it.first);
        REQUIRE(comes([&] {
            const std::vector<Watch::Seen> seen = watch.take();
            return std::any_of(seen.begin(), seen.end(),
                               [](const Watch::Seen& each) { return each.sessions == Sessions{1}; });
        }));
        it.end(*it.first);
    }
}

TEST_CASE("solo: no session in a quiesce window, nor beside an experiment", "[solo]") {
    {
        TwoTenants it(std::make_unique<Watch>());
        it.device.set_loads_wait();
        it.launch(*it.first);
        it.end(*it.first);
        REQUIRE(it.one->free.load());
        {
            const Quiesce quiesce(it.dispatcher, *it.two, Quiesce::For::kLoad);
            CHECK(!it.one->free.load());
            REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
            CHECK(!it.one->free.load());
        }
        it.pass(1s);
        it.end(*it.first);
    }
    TwoTenants it(std::make_unique<Watch>(), 0, 1);
    for (int i = 0; i < 5; ++i) {
        it.launch(*it.first);
        it.end(*it.first);
    }
    CHECK(it.dispatcher.begins().asked == 5);
}

TEST_CASE("solo: another policy decides anew, and a tenant that leaves ends its session", "[solo]") {
    TwoTenants it("fair");
    it.launch(*it.first);
    it.end(*it.first);
    REQUIRE(it.one->free.load());
    it.dispatcher.set_policy(schedule::make_policy("hpf"));
    CHECK(!it.one->free.load());
    it.dispatcher.set_policy(schedule::make_policy("fair"));
    it.launch(*it.first);
    it.end(*it.first);
    CHECK(it.one->free.load());
    const auto third = tenant_of(3);
    it.dispatcher.enter(third);
    CHECK(it.one->free.load());  // it has no work
    it.dispatcher.exit(third);
    CHECK(!it.one->free.load());
}

namespace {

// Counts how many policies of its name were there before.
class Heir final : public schedule::Policy {
public:
    explicit Heir(const char* name) : Policy({name, Stops::kAny}) {}
    void want(const schedule::Snapshot&, schedule::TimePoint, schedule::Wanted&) override {}
    void recall(schedule::Policy& earlier) override { before = dynamic_cast<Heir&>(earlier).before + 1; }
    int before = 0;
};

}  // namespace

TEST_CASE("policy in force: a policy recalls the last one of its name", "[solo]") {
    PolicyInForce policy(std::make_unique<Heir>("a"), {});
    const auto adopt = [&](const char* name) {
        auto heir = std::make_unique<Heir>(name);
        const Heir& seen = *heir;
        policy.adopt(std::move(heir));
        return seen.before;
    };
    CHECK(adopt("b") == 0);
    CHECK(adopt("a") == 1);
    CHECK(adopt("a") == 2);
    CHECK(adopt("b") == 1);
}

}  // namespace smt::runtime::dispatch
