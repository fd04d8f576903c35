#include "runtime/dispatch/wait_list.h"

#include <catch2/catch.hpp>

using namespace smt::runtime::dispatch;

namespace {

constexpr uint64_t kResting = 6;

struct Node {
    std::shared_ptr<std::atomic<uint64_t>> word = std::make_shared<std::atomic<uint64_t>>(kResting);
    WaitWord wait() const { return {word, kResting}; }
};

}  // namespace

TEST_CASE("wait list: a wait for a value holds the stream up until it is over", "[dispatch]") {
    WaitList list;
    CHECK(list.empty());
    const uint64_t first = list.add({3, 5}), second = list.add({4, 7});
    CHECK(list.place().launches == 3);
    CHECK(list.place().marker == 5);
    CHECK(list.holds_up());
    list.end(first);
    CHECK(list.place().launches == 4);
    CHECK(list.holds_up());
    list.end(second);
    CHECK(list.empty());
}

TEST_CASE("wait list: a graph holds the stream up while one of its nodes waits", "[dispatch]") {
    Node one, other;
    WaitList list;
    list.add({}, {one.wait(), other.wait()});
    CHECK_FALSE(list.holds_up());
    *other.word = kResting - 1;
    CHECK(list.holds_up());
    *one.word = kResting - 1;
    *other.word = kResting;
    CHECK(list.holds_up());
    *one.word = kResting;
    CHECK_FALSE(list.holds_up());
}

TEST_CASE("wait list: a wait behind a graph that works does not hold the stream up yet", "[dispatch]") {
    const Node node;
    WaitList list;
    const uint64_t graph = list.add({}, {node.wait()});
    list.add({});
    CHECK_FALSE(list.holds_up());
    list.end(graph);
    CHECK(list.holds_up());
}

TEST_CASE("wait list: what was recorded behind a wait waits until that is over", "[dispatch]") {
    CHECK_FALSE(WaitWord{}.waits());
    WaitWord last, removed, of_a_stream_that_is_gone;
    {
        WaitList list;
        CHECK_FALSE(list.last().waits());
        const uint64_t first = list.add({}), second = list.add({});
        last = list.last();
        list.end(first);
        CHECK(last.waits());
        list.end(second);
        CHECK_FALSE(last.waits());
        const uint64_t failed = list.add({});
        removed = list.last();
        list.remove(failed);
        CHECK_FALSE(removed.waits());
        list.add({});
        of_a_stream_that_is_gone = list.last();
        CHECK(of_a_stream_that_is_gone.waits());
    }
    CHECK_FALSE(of_a_stream_that_is_gone.waits());
}

TEST_CASE("wait list: waits that are over take no room", "[dispatch]") {
    WaitList list;
    for (int i = 0; i < 100'000; ++i) {
        list.end(list.add({}) - 1);
        REQUIRE(list.size() == 1);
    }
}
