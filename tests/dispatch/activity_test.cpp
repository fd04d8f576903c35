// When a session has work, as its streams say it: pauses as they were, however rarely a thread looks.
#include "runtime/dispatch/activity.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "tests/dispatch/two_tenants.h"

namespace smt::runtime::dispatch {

using namespace std::chrono_literals;
using schedule::TimePoint;
using tests::TwoTenants;

namespace {

constexpr TimePoint kActivityBegin = TimePoint{} + 1h;

// A stream ends, when there have been so many launches, and so many are over.
void ends(Activity& activity, TimePoint at, uint64_t launches, uint64_t over) {
    while (activity.launches() < launches) activity.launch();
    while (activity.over() < over) activity.end_launch();
    activity.ends(at);
}

// What the first tenant's streams have said since the last call. A service; the other tenant is not.
struct ServiceBeside : TwoTenants {
    ServiceBeside() : TwoTenants(schedule::make_policy("fifo"), 0, 0, {.p99 = 10ms}) {}
    schedule::Activity take() { return one->activity.take(); }
    TimePoint now() const { return device.now(); }
};

}  // namespace

TEST_CASE("activity: pauses of a session are those in which none of its streams has work", "[solo]") {
    Activity activity;
    const auto at = [](schedule::Duration moment) { return kActivityBegin + moment; };
    activity.begins(at(0us));
    schedule::Activity taken = activity.take();
    CHECK(taken.works);
    CHECK(taken.began == at(0us));
    REQUIRE(taken.pauses.size() == 1);  // before the first work
    activity.begins(at(100us));
    ends(activity, at(200us), 5, 4);
    CHECK(activity.take().works);
    ends(activity, at(300us), 6, 6);
    taken = activity.take();
    CHECK_FALSE(taken.works);
    CHECK(taken.ended == at(300us));
    activity.begins(at(499us));  // too short for a pause
    ends(activity, at(600us), 7, 7);
    activity.begins(at(800us));
    ends(activity, at(900us), 12, 11);
    taken = activity.take();
    CHECK(taken.began == at(800us));
    CHECK(taken.ended == at(900us));
    REQUIRE(taken.pauses.size() == 1);
    CHECK(taken.pauses[0].from == at(600us));
    CHECK(taken.pauses[0].to == at(800us));
    CHECK(taken.pauses[0].launches == 7);
    CHECK(taken.pauses[0].over == 7);
    CHECK(activity.take().pauses.empty());
}

TEST_CASE("activity: the last pauses are kept where none are taken, and others counted", "[solo]") {
    Activity activity;
    constexpr int kMany = 2 * static_cast<int>(Activity::kMostPauses);
    for (int i = 0; i < kMany; ++i) {
        activity.begins(kActivityBegin + i * 1ms);
        activity.ends(kActivityBegin + i * 1ms + 100us);
    }
    const schedule::Activity taken = activity.take();
    REQUIRE(taken.pauses.size() == Activity::kMostPauses);
    CHECK(taken.pauses.back().to == kActivityBegin + (kMany - 1) * 1ms);
    CHECK(taken.forgotten == Activity::kMostPauses);
    CHECK(activity.take().forgotten == 0);
}

TEST_CASE("activity: streams that begin and end at any time leave none behind", "[solo]") {
    Activity activity;
    const auto stream = [&] {
        for (int i = 1; i <= 10'000; ++i) {
            activity.begins(kActivityBegin + i * 1ms);
            activity.ends(kActivityBegin + i * 1ms);
        }
    };
    std::thread other(stream);
    for (int i = 0; i < 100; ++i) CHECK(activity.take().pauses.size() <= Activity::kMostPauses);
    stream();
    other.join();
    CHECK_FALSE(activity.take().works);
}

TEST_CASE("activity: a stream says when a launch begins behind none, and when the last is over", "[solo]") {
    for (const bool unmanaged : {false, true}) {
        INFO(unmanaged);
        ServiceBeside it;
        it.take();
        const auto launch = [&](ManagedStream& stream) {
            REQUIRE((unmanaged ? it.launch_unmanaged(stream) : it.launch(stream)) == CUDA_SUCCESS);
        };
        const std::unique_ptr<ManagedStream> also = it.open(it.one);
        launch(*it.first);
        const TimePoint began = it.now();
        it.pass(1ms);
        launch(*it.first);
        launch(*also);
        it.pass(1ms);
        schedule::Activity taken = it.take();
        CHECK(taken.works);
        CHECK(taken.began == began);
        it.end(*it.first);  // the GPU does the work of both
        it.end(*also);
        const TimePoint ended = it.now();
        it.pass(250us);
        launch(*also);
        it.pass(50us);
        taken = it.take();
        CHECK(taken.works);
        REQUIRE(taken.pauses.size() == 1);
        CHECK(taken.pauses[0].from == ended);
        CHECK(taken.pauses[0].to == ended + 250us);
        CHECK(taken.pauses[0].launches == 3);
        CHECK(taken.pauses[0].over == 3);
        it.end(*also);
        taken = it.take();
        CHECK_FALSE(taken.works);
        CHECK(taken.ended == ended + 300us);
        launch(*also);
        also->abandon();
        it.end(*also);
    }
}

TEST_CASE("activity: a stream that is gone has no work", "[solo]") {
    ServiceBeside it;
    {
        const std::unique_ptr<ManagedStream> gone = it.open(it.one);
        REQUIRE(it.launch(*gone) == CUDA_SUCCESS);
        CHECK(it.take().works);
        gone->abandon();
        it.gpu.run();
    }
    CHECK_FALSE(it.take().works);
    REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);  // no service
    CHECK_FALSE(it.two->activity.take().works);
    CHECK(it.two->activity.take().began == TimePoint{});
}

TEST_CASE("activity: a program's wait for its launches shows their end", "[solo]") {
    ServiceBeside it;
    REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
    CHECK(it.take().works);
    it.pass(1ms);
    it.gpu.run();
    it.first->over(it.first->issued());
    CHECK_FALSE(it.one->activity.take().works);
    it.pass(1ms);
    CHECK(it.take().ended == it.now() - 1ms);
}

TEST_CASE("activity: other work than launches counts, where others may be stopped for it", "[solo]") {
    TwoTenants it(std::make_unique<tests::Undecided>(), 0, 0, {.p99 = 10ms});
    it.gpu.enqueue_other(1);
    REQUIRE(it.first->note_other() == CUDA_SUCCESS);
    CHECK(it.one->activity.take().works);
    it.end(*it.first);
    CHECK_FALSE(it.one->activity.take().works);
}

}  // namespace smt::runtime::dispatch
