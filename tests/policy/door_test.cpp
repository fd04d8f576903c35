// Kernels with doors: they can be stopped, and be given nothing else.
#include "runtime/schedule/record.h"
#include "tests/policy/snapshots.h"

using namespace smt::tests;

namespace {

const Resources kHalfSm = nth_of(kSm, 2);

Kernel with_door(Kernel made) {
    made.managed = false;
    made.has_door = true;
    return made;
}

Kernel left(Kernel made, int priority, std::chrono::microseconds remaining) {
    made.priority = priority;
    made.remaining = remaining;
    made.preemption = 100us;
    return made;
}

}  // namespace

TEST_CASE("fair: kernels with doors take turns, also with managed ones", "[policy]") {
    for (const bool both : {true, false}) {
        const auto policy = make_fair({.resume = 0us});
        Kernel a = with_door(kernel(1, 1000)), b = kernel(2, 1000);
        if (both) b = with_door(b);
        a.preemption = b.preemption = 100us;
        const Decision first = policy->decide({device(4), {a, b}}, kBegin);
        CHECK(said(first) == Said{{1, "run"}, {2, "wait"}});
        CHECK(first.again == 1ms);
        CHECK(said(policy->decide({device(4), {a, waiting(b)}}, kBegin + 1ms)) ==
              Said{{1, "wait"}, {2, "run"}});
        policy->decide({device(4), {waiting(a), b}}, kBegin + 1ms);  // it stops at once
        CHECK(said(policy->decide({device(4), {waiting(a), b}}, kBegin + 2ms)) ==
              Said{{1, "run"}, {2, "wait"}});
    }
}

TEST_CASE("hpf: a kernel with a door has the GPU or waits, and is given no table", "[policy]") {
    const Kernel few = kernel(2, 2, kHalfSm), many = kernel(1, 1000, kHalfSm),
                 other = kernel(3, 900, kHalfSm);
    struct Row {
        const char* what;
        std::vector<Kernel> kernels;
        Said expected;
    };
    const Row rows[] = {
        {"alone", {with_door(few)}, {{2, "run"}}},
        {"urgent, over a managed one", {left(with_door(few), 1, 2ms), many}, {{1, "wait"}, {2, "run"}}},
        {"urgent, over another one",
         {left(with_door(few), 1, 2ms), with_door(many)},
         {{1, "wait"}, {2, "run"}}},
        {"behind one that needs all", {left(other, 1, 2ms), with_door(many)}, {{1, "wait"}, {3, "run"}}},
        {"behind one that needs few, which has all",
         {left(few, 1, 2ms), with_door(many)},
         {{1, "wait"}, {2, "run"}}},
        {"behind one that needs few, with a managed one for the rest",
         {left(few, 1, 2ms), left(with_door(many), 0, 3ms), left(other, 0, 4ms)},
         {{1, "wait"}, {2, "run 2 0 0 0"}, {3, "run 0 2 2 2"}}},
        {"of equals the shorter",
         {left(with_door(many), 0, 3ms), left(with_door(other), 0, 2ms)},
         {{1, "wait"}, {3, "run"}}},
        {"waiting, with the others gone", {waiting(with_door(many))}, {{1, "run"}}},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        const auto policy = make_hpf({.short_job = 0us});
        CHECK(said(policy->decide({device(4), row.kernels}, kBegin)) == row.expected);
    }
    CHECK(said(make_hpf({.spatial = false})
                   ->decide({device(4), {left(few, 1, 2ms), with_door(many)}}, kBegin)) ==
          Said{{1, "wait"}, {2, "run"}});
}

TEST_CASE("hpf: a kernel with a door is not the running one while it waits for a more urgent one",
          "[policy]") {
    const Kernel urgent = left(kernel(1, 2, kHalfSm), 1, 2ms),
                 door = left(with_door(kernel(2, 1000, kHalfSm)), 0, 1000us),
                 beside = left(kernel(3, 1000, kHalfSm), 0, 1050us);
    const auto policy = make_hpf({.short_job = 0us});
    REQUIRE(said(policy->decide({device(4), {urgent, door, beside}}, kBegin)) ==
            Said{{1, "run 2 0 0 0"}, {2, "wait"}, {3, "run 0 2 2 2"}});
    // To stop what runs takes longer than the waiting one would be sooner over.
    CHECK(said(policy->decide({device(4), {waiting(door), beside}}, kBegin + 1ms)) == Said{{3, "run"}});
}

TEST_CASE("hpf: a kernel with a door waits for its turn among equals, and gets it", "[policy]") {
    const Kernel shorter = left(kernel(1, 1000, kHalfSm), 0, 1ms),
                 longer = left(with_door(kernel(2, 1000, kHalfSm)), 0, 9ms);
    const auto policy = make_hpf();
    REQUIRE(said(policy->decide({device(4), {shorter, longer}}, kBegin)) == Said{{1, "run"}, {2, "wait"}});
    const Decision later = policy->decide({device(4), {shorter, waiting(longer)}}, kBegin + 1ms);
    REQUIRE(later.again);
    CHECK(said(policy->decide({device(4), {shorter, waiting(longer)}}, kBegin + 1ms + *later.again)) ==
          Said{{1, "wait"}, {2, "run"}});
}

TEST_CASE("priority: what has a door is stopped, what has none is held back", "[policy]") {
    Kernel urgent = kernel(1, 100), unmanaged = kernel(2, 100), managed = kernel(3, 100),
           door = with_door(kernel(4, 100));
    urgent.priority = 1;
    urgent.tenant = "bob";
    unmanaged.managed = false;
    std::map<uint64_t, std::string> reasons;
    for (const Assignment& each :
         make_priority()->decide({device(4), {urgent, unmanaged, managed, door}}, kBegin).assignments) {
        CHECK(each.action == Action::kWait);
        reasons[each.kernel] = each.reason;
    }
    CHECK(reasons == std::map<uint64_t, std::string>{{2, "held back for bob (priority 1 over 0)"},
                                                     {3, "stopped for bob (priority 1 over 0)"},
                                                     {4, "stopped for bob (priority 1 over 0)"}});
}

TEST_CASE("greedy, compact and slice leave kernels with doors running, and count them nowhere", "[policy]") {
    Kernel a = kernel(1, 1000, kHalfSm), b = kernel(2, 1000, kHalfSm),
           door = with_door(kernel(3, 1000, kHalfSm));
    for (const char* name : {"greedy", "compact", "slice"}) {
        INFO(name);
        const Said without = said(make_policy(name)->decide({device(4), {a, b}}, kBegin));
        const auto policy = make_policy(name);
        CHECK(said(policy->decide({device(4), {a, b, door}}, kBegin)) == without);
        Said with = without;
        with[3] = "run";
        CHECK(said(make_policy(name)->decide({device(4), {a, b, waiting(door)}}, kBegin)) == with);
    }
}

TEST_CASE("a recorded kernel has its door, one of an older recording none", "[policy]") {
    Record back;
    Snapshot snapshot{device(4), {with_door(kernel(1, 10)), kernel(2, 10)}};
    REQUIRE(read_line(record_line(snapshot, kBegin, {}), back));
    REQUIRE(back.snapshot.kernels.size() == 2);
    CHECK(back.snapshot.kernels[0].has_door);
    CHECK(back.snapshot.kernels[0].stoppable());
    CHECK_FALSE(back.snapshot.kernels[0].managed);
    CHECK_FALSE(back.snapshot.kernels[1].has_door);
    REQUIRE(read_line(
        R"({"now":1,"snapshot":{"device":{},"kernels":[{"id":1,"managed":false}]},"decision":{}})", back));
    CHECK_FALSE(back.snapshot.kernels[0].has_door);
    CHECK_FALSE(back.snapshot.kernels[0].stoppable());
}
