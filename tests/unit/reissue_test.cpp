// Which launches of before a fault may be executed again, and which of them are known.
#include <catch2/catch.hpp>
#include <cstring>

#include "runtime/server/takeover/launch_log.h"
#include "runtime/server/takeover/repeatable.h"

namespace {

using namespace smt::runtime::server;
using smt::protocol::Op;

constexpr MemoryRange kA{0, 10}, kB{10, 20}, kC{20, 30};

LaunchEffects launch(MemoryRanges reads, MemoryRanges writes, uint32_t stream = 2, bool again = true) {
    return {stream, again, "k", std::move(reads), std::move(writes)};
}
bool may(const std::vector<LaunchEffects>& launches) { return why_not_repeatable(launches).empty(); }

std::string copy(smt::protocol::Place to, smt::protocol::CopyAnswer answer) {
    smt::protocol::Copy copy{};
    copy.to.place = to;
    copy.answer = answer;
    return {reinterpret_cast<const char*>(&copy), sizeof copy};
}

}  // namespace

TEST_CASE("reissue: a launch that writes other memory than it reads", "[takeover]") {
    CHECK(may({launch({kA}, {kB})}));
    CHECK(may({launch({}, {kA})}));
    CHECK_FALSE(may({launch({kA}, {kA})}));
    CHECK_FALSE(may({launch({kA, kB}, {kC, {19, 20}})}));
    CHECK(why_not_repeatable({launch({kA}, {kA})}) == "kernel k reads memory that it writes");
}

TEST_CASE("reissue: no later launch writes what an earlier one reads", "[takeover]") {
    CHECK(may({launch({kA}, {kB}), launch({kB}, {kC})}));
    CHECK(may({launch({kA}, {kB}), launch({kA}, {kB})}));
    CHECK_FALSE(may({launch({kA}, {kB}), launch({kB}, {kA})}));
    // One that is kept back behind it runs once only, but it has run in front of the fault in part.
    CHECK_FALSE(may({launch({kA}, {kB}), launch({kC}, {kA}, 2, false)}));
    CHECK(may({launch({kA}, {kB}), launch({kC}, {kC}, 2, false)}));
}

TEST_CASE("reissue: launches of two streams read the same at most", "[takeover]") {
    CHECK(may({launch({kA}, {kB}, 2), launch({kA}, {kC}, 3)}));
    CHECK_FALSE(may({launch({kA}, {kB}, 2), launch({kC}, {kB}, 3)}));
    CHECK_FALSE(may({launch({kA}, {kB}, 2), launch({kB}, {kC}, 3)}));
    CHECK_FALSE(may({launch({kB}, {kC}, 2), launch({kA}, {kB}, 3, false)}));
    CHECK(may({launch({kA}, {kB}, 2), launch({kC}, {kC}, 3, false)}));
}

TEST_CASE("reissue: the log has launches and events in order", "[takeover]") {
    LaunchLog log;
    log.note(Op::kLaunch, true, false, {2, 5}, "launch");
    log.note(Op::kEventRecord, true, false, {3, 6}, "event");
    log.note(Op::kStreamSynchronize, true, false, {~0u, 0}, "");
    log.note(Op::kLaunch, false, false, {2, 6}, "refused");
    log.note(Op::kMemAlloc, false, true, {~0u, 0},
             "executed again by itself, yet it may have been half done");
    CHECK(log.all().empty());
    log.mark(true);
    log.note(Op::kLaunch, true, false, {2, 7}, "again");
    log.mark(false);
    log.note(Op::kEventRecord, true, false, {2, 8}, "event");
    const auto all = log.all();
    REQUIRE(all.size() == 2);
    CHECK((all[0].op == Op::kLaunch && all[0].stream == 2 && all[0].number == 7 && all[0].again));
    CHECK((all[1].op == Op::kEventRecord && !all[1].again && all[1].record == "event"));
}

TEST_CASE("reissue: whatever may change memory empties the log", "[takeover]") {
    using smt::protocol::CopyAnswer, smt::protocol::Place;
    const auto left_after = [](Op op, const std::string& record, bool fatal = false) {
        LaunchLog log;
        log.note(Op::kLaunch, true, false, {2, 5}, "launch");
        log.note(op, !fatal, fatal, {2, 6}, record);
        return log.all().size();
    };
    for (const Op op : {Op::kMemAlloc, Op::kMemFree, Op::kMemFreeAsync, Op::kGraphLaunch, Op::kHostFunction,
                        Op::kStreamWaitEvent, Op::kStreamBeginCapture, Op::kStreamEndCapture,
                        Op::kModuleUnload, static_cast<Op>(smt::protocol::kFirstGeneratedOp + 3)})
        CHECK(left_after(op, "") == 0);
    for (const Op op : {Op::kStreamQuery, Op::kEventSynchronize, Op::kContextSynchronize, Op::kMemInfo})
        CHECK(left_after(op, "") == 1);
    CHECK(left_after(Op::kCopy, copy(Place::kHost, CopyAnswer::kDone)) == 2);
    CHECK(left_after(Op::kCopy, copy(Place::kHost, CopyAnswer::kEnqueued)) == 1);  // its number is missing
    CHECK(left_after(Op::kCopy, copy(Place::kHost, CopyAnswer::kDone), true) == 1);
    CHECK(left_after(Op::kCopy, copy(Place::kDevice, CopyAnswer::kDone)) == 0);
    CHECK(left_after(Op::kCopy, copy(Place::kDevice, CopyAnswer::kDone), true) == 0);
    CHECK(left_after(Op::kCopy, "short") == 0);
}

TEST_CASE("reissue: the log has an end", "[takeover]") {
    LaunchLog log;
    for (uint64_t number = 0; number < LaunchLog::kMost + 3; ++number)
        log.note(Op::kLaunch, true, false, {2, number}, "launch");
    CHECK(log.all().size() == LaunchLog::kMost);
    CHECK(log.all().front().number == 3);
}
