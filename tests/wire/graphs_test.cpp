// The server's graphs, those of captures too: what is made in them, moved, and left of them.
#include <catch2/catch.hpp>
#include <vector>

#include "tests/wire/objects.h"

namespace smt::tests::objects {
namespace {

// A stream that captures a fill, and what the server says of the capture.
struct Capturing {
    TestSession client;
    TestLane lane = client.open_lane();
    uint32_t stream =
        lane.call(Op::kStreamCreate, StreamCreate{CU_STREAM_NON_BLOCKING, 0}).as<StreamCreated>().stream;
    uint64_t memory = lane.call(Op::kMemAlloc, MemAlloc{4096, 0, 0}).as<MemAllocated>().address;
    uint64_t graph = 0, node = 0;

    void begin() {
        const StreamCapture request{stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 0};
        REQUIRE(lane.call(Op::kStreamBeginCapture, request).status == CUDA_SUCCESS);
        look();
    }
    void look() {
        lane.call(static_cast<uint16_t>(GeneratedOp::kMemsetD32Async), fill().data(), 32);
        const Reply reply = lane.call(Op::kStreamCaptureInfo, StreamRef{stream, 0});
        REQUIRE(reply.status == CUDA_SUCCESS);
        Reader reader = reply.reader();
        const auto info = reader.scalar<CaptureInfo>();
        REQUIRE(info.dependency_count == 1);
        graph = info.graph;
        node = reader.scalar<uint64_t>();
    }
    std::vector<uint64_t> fill() const { return {memory, 7, 4, stream}; }
    Reply end() { return lane.call(Op::kStreamEndCapture, StreamRef{stream, 0}); }
};

TEST_CASE("a captured graph keeps its id, and is left alone while it is captured", "[objects]") {
    Capturing capture;
    capture.begin();
    TestLane& lane = capture.lane;
    CHECK(nodes_of(lane, capture.graph) == std::vector<uint64_t>{capture.node});
    CHECK(status_of(lane, GeneratedOp::kGraphDestroyNode, {capture.node}) == CUDA_ERROR_ILLEGAL_STATE);
    CHECK(destroy_graph(lane, capture.graph) == CUDA_ERROR_INVALID_VALUE);
    add_node(lane, capture.graph);
    const Reply ended = capture.end();
    REQUIRE(ended.status == CUDA_SUCCESS);
    CHECK(ended.as<uint64_t>() == capture.graph);
    CHECK(nodes_of(lane, capture.graph).at(0) == capture.node);
    CHECK(destroy_graph(lane, capture.graph) == CUDA_SUCCESS);
    CHECK(ask_type(lane, capture.node) == CUDA_ERROR_INVALID_HANDLE);
}

// The driver drops the graph.
TEST_CASE("what a broken capture made is gone", "[objects]") {
    Capturing capture;
    capture.begin();
    TestLane& lane = capture.lane;
    CHECK(lane.call(Op::kStreamSynchronize, StreamRef{capture.stream, 0}).status ==
          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SECTION("before it is ended") {}
    SECTION("and when it was ended") { CHECK(capture.end().status == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED); }
    SECTION("and when its stream was destroyed") {
        CHECK(lane.call(Op::kStreamDestroy, StreamRef{capture.stream, 0}).status == CUDA_SUCCESS);
    }
    CHECK(ask_type(lane, capture.node) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(status_of(lane, GeneratedOp::kGraphGetNodes, {3, capture.graph, 16, 16}) ==
          CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a program's own graph survives a capture into it, and goes once", "[objects]") {
    Capturing capture;
    TestLane& lane = capture.lane;
    const uint64_t graph = new_graph(lane), before = add_node(lane, graph);
    struct {
        StreamCapture capture;
        uint64_t count = 1, node;
        CUgraphEdgeData edge{};
    } request{{capture.stream, CU_STREAM_CAPTURE_MODE_RELAXED, graph}, 1, before};
    REQUIRE(lane.call(Op::kBeginCaptureToGraph, request).status == CUDA_SUCCESS);
    capture.look();
    CHECK(capture.graph == graph);
    CHECK(destroy_graph(lane, graph) == CUDA_ERROR_ILLEGAL_STATE);
    SECTION("when it is ended") {
        CHECK(capture.end().as<uint64_t>() == graph);
        CHECK(nodes_of(lane, graph) == std::vector<uint64_t>{before, capture.node});
        CHECK(destroy_graph(lane, graph) == CUDA_SUCCESS);
    }
    SECTION("when it is broken") {
        lane.call(Op::kStreamSynchronize, StreamRef{capture.stream, 0});
        CHECK(capture.end().status == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CHECK(ask_type(lane, before) == CUDA_SUCCESS);
        CHECK(destroy_graph(lane, graph) == CUDA_SUCCESS);
    }
    SECTION("when everything is reset") { CHECK(lane.call(Op::kContextReset).status == CUDA_SUCCESS); }
    CHECK(ask_type(lane, before) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("work is captured on one lane while another looks at the graph", "[objects]") {
    Capturing capture;
    capture.begin();
    TestLane other = capture.client.open_lane();
    std::thread captures([&] {
        for (int i = 0; i < kRounds; ++i) {
            capture.lane.call(static_cast<uint16_t>(GeneratedOp::kMemsetD32Async), capture.fill().data(), 32);
        }
    });
    for (int i = 0; i < kRounds; ++i) {
        REQUIRE(status_of(other, GeneratedOp::kGraphGetNodes, {2, capture.graph, 0, 0}) == CUDA_SUCCESS);
    }
    captures.join();
    CHECK(capture.end().as<uint64_t>() == capture.graph);
}

TEST_CASE("a host function is a graph's or its stream's, whenever another lane begins a capture",
          "[objects]") {
    Race race;
    TestLane& lane = race.lanes[0];
    const auto stream =
        lane.call(Op::kStreamCreate, StreamCreate{CU_STREAM_NON_BLOCKING, 0}).as<StreamCreated>().stream;
    for (int i = 0; i < 10 * kRounds; ++i) {
        race.run(
            [&](TestLane& each) {
                const StreamCapture request{stream, CU_STREAM_CAPTURE_MODE_RELAXED, 0};
                return each.call(Op::kStreamBeginCapture, request).status;
            },
            [&](TestLane& each) {
                return each.call(Op::kHostFunction, HostFunction{0x10, 0x20, 0, stream, 0}).status;
            });
        REQUIRE(race.answers[0] == CUDA_SUCCESS);
        REQUIRE(race.answers[1] == CUDA_SUCCESS);
        const auto graph = lane.call(Op::kStreamEndCapture, StreamRef{stream, 0}).as<uint64_t>();
        for (uint64_t node : nodes_of(lane, graph)) {
            const Reply function = lane.call(Op::kGraphHostNodeGet, node);
            REQUIRE(function.status == CUDA_SUCCESS);
            REQUIRE(function.as<uint64_t>() == 0x10);
        }
        const uint64_t exec = handle_from(lane, GeneratedOp::kGraphInstantiateWithFlags, {1, graph, 0});
        for (int launch = 0; launch < 2; ++launch)
            REQUIRE(lane.call(Op::kGraphLaunch, GraphLaunch{exec, stream, 0}).status == CUDA_SUCCESS);
        REQUIRE(lane.call(Op::kStreamSynchronize, StreamRef{stream, 0}).status == CUDA_SUCCESS);
        REQUIRE(destroy_graph(lane, graph) == CUDA_SUCCESS);
        REQUIRE(status_of(lane, GeneratedOp::kGraphExecDestroy, {exec}) == CUDA_SUCCESS);
    }
}

TEST_CASE("a graph is moved into one node, and goes with it", "[objects]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const uint64_t inner = new_graph(lane), leaf = add_node(lane, inner), outer = new_graph(lane);
    const auto move = [&](uint64_t graph, uint64_t child) {
        return lane.call(Op::kGraphChildNode, GraphChildNode{NodeOperation::kAdd, 0, graph, 0, child, 0, 0});
    };
    CHECK(move(outer, outer).status == CUDA_ERROR_INVALID_VALUE);
    const Reply moved = move(outer, inner);
    REQUIRE(moved.status == CUDA_SUCCESS);
    CHECK(child_of(lane, moved.as<uint64_t>()) == inner);
    CHECK(move(outer, inner).status == CUDA_ERROR_INVALID_VALUE);  // it is another node's already
    CHECK(move(inner, outer).status == CUDA_ERROR_INVALID_VALUE);  // and would be its own child
    CHECK(destroy_graph(lane, inner) == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask_type(lane, leaf) == CUDA_SUCCESS);
    REQUIRE(destroy_graph(lane, outer) == CUDA_SUCCESS);
    CHECK(ask_type(lane, leaf) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(status_of(lane, GeneratedOp::kGraphGetNodes, {3, inner, 16, 16}) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a node depends on nodes of its own graph", "[objects]") {
    Capturing capture;
    TestLane& lane = capture.lane;
    const uint64_t other = new_graph(lane), foreign = add_node(lane, other);
    const uint64_t graph = new_graph(lane), node = add_node(lane, graph);
    CHECK(status_of(lane, GeneratedOp::kGraphAddEmptyNode, {1, graph, 1, foreign, 1}) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(status_of(lane, GeneratedOp::kGraphAddChildGraphNode, {1, graph, 1, foreign, 1, other}) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(status_of(lane, GeneratedOp::kGraphAddDependencies_v2, {graph, 1, foreign, 1, node, kNull, 1}) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(status_of(lane, GeneratedOp::kGraphAddDependencies_v2, {graph, 1, node, 1, foreign, kNull, 1}) ==
          CUDA_ERROR_INVALID_VALUE);
    capture.begin();
    struct {
        StreamUpdateCapture update;
        uint64_t node;
    } request{{capture.stream, CU_STREAM_SET_CAPTURE_DEPENDENCIES, 1, 0}, foreign};
    CHECK(lane.call(Op::kStreamUpdateCapture, request).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(capture.end().status == CUDA_SUCCESS);
    REQUIRE(destroy_graph(lane, other) == CUDA_SUCCESS);
    const uint64_t exec = handle_from(lane, GeneratedOp::kGraphInstantiateWithFlags, {1, graph, 0});
    CHECK(lane.call(Op::kGraphLaunch, GraphLaunch{exec, kLegacyStream, 0}).status == CUDA_SUCCESS);
}

TEST_CASE("copies of a graph in itself end", "[objects]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const uint64_t graph = new_graph(lane);
    add_node(lane, graph);
    CUresult last = CUDA_SUCCESS;
    for (int i = 0; i < 20 && last == CUDA_SUCCESS; ++i)
        last = status_of(lane, GeneratedOp::kGraphAddChildGraphNode, {1, graph, kNoArray, 0, graph});
    CHECK(last == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(destroy_graph(lane, graph) == CUDA_SUCCESS);
}

TEST_CASE("an event whose record is captured is waited for when its graph runs", "[objects]") {
    Capturing capture;
    TestLane& lane = capture.lane;
    REQUIRE(lane.call(Op::kEventCreate, EventCreate{0, 0}).status == CUDA_SUCCESS);
    capture.begin();
    lane.post(Op::kEventRecord, EventRecord{0, capture.stream, CU_EVENT_RECORD_EXTERNAL, 0, 0});
    CHECK(lane.call(Op::kEventSynchronize, EventRef{0, 0}).status == CUDA_SUCCESS);
    const auto graph = capture.end().as<uint64_t>();
    CHECK(lane.call(Op::kEventElapsed, EventPair{0, 0}).status == CUDA_ERROR_INVALID_HANDLE);
    const uint64_t exec = handle_from(lane, GeneratedOp::kGraphInstantiateWithFlags, {1, graph, 0});
    CHECK(lane.call(Op::kGraphLaunch, GraphLaunch{exec, capture.stream, 0}).status == CUDA_SUCCESS);
    CHECK(lane.call(Op::kStreamSynchronize, StreamRef{capture.stream, 0}).status == CUDA_SUCCESS);
    CHECK(lane.call(Op::kEventElapsed, EventPair{0, 0}).status == CUDA_SUCCESS);
}

TEST_CASE("a fill writes elements of 1, 2 or 4 bytes, and nothing where it has no rows", "[objects]") {
    TestSession client, other;
    TestLane lane = client.open_lane(), others = other.open_lane();
    const auto memory = lane.call(Op::kMemAlloc, MemAlloc{4096, 0, 0}).as<MemAllocated>();
    const auto foreign = others.call(Op::kMemAlloc, MemAlloc{4096, 0, 0}).as<MemAllocated>();
    REQUIRE(status_of(others, GeneratedOp::kMemsetD8Async, {foreign.address, 1, 64, kLegacyStream}) ==
            CUDA_SUCCESS);
    REQUIRE(others.call(Op::kContextSynchronize).status == CUDA_SUCCESS);
    status_of(lane, GeneratedOp::kMemsetD2D8Async, {foreign.address, 64, 7, 64, 0, kLegacyStream});
    const uint64_t graph = new_graph(lane);
    const auto fill = [&](uint64_t address, uint64_t element, uint64_t height) {
        return status_of(lane, GeneratedOp::kGraphAddMemsetNode,
                         {1, graph, kNoArray, 0, 1, address, 64, 7 | element << 32, 4, height});
    };
    CHECK(fill(memory.address, 8, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(fill(memory.address, 1024, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(fill(memory.address, 2, 1) == CUDA_SUCCESS);
    fill(foreign.address, 4, 0);
    const uint64_t exec = handle_from(lane, GeneratedOp::kGraphInstantiateWithFlags, {1, graph, 0});
    REQUIRE(lane.call(Op::kGraphLaunch, GraphLaunch{exec, kLegacyStream, 0}).status == CUDA_SUCCESS);
    REQUIRE(lane.call(Op::kContextSynchronize).status == CUDA_SUCCESS);
    CHECK(*reinterpret_cast<const uint32_t*>(foreign.address) ==
          0x01010101);  // the driver's memory is the host's
}

}  // namespace
}  // namespace smt::tests::objects
