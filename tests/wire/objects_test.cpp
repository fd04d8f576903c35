// The server's objects: an id means one object for as long as it lives, and no driver call gets an object
// that is gone, whichever lane destroyed it.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "opcodes.gen.h"
#include "tests/wire/server.h"

namespace smt::tests {
namespace {

using namespace protocol;

constexpr int kRounds = 200;
constexpr uint64_t kNoArray = kNull;
constexpr char kTextureImage[] = "FAKE\nkernel fill params 8,4,4\ntexture picture\n";

// A generated call whose parameters are all 8 bytes wide. Calls that answer something begin with a 1.
Reply ask(TestLane& lane, GeneratedOp op, std::vector<uint64_t> words) {
    return lane.call(static_cast<uint16_t>(op), words.data(), words.size() * sizeof(uint64_t));
}

CUresult status_of(TestLane& lane, GeneratedOp op, std::vector<uint64_t> words) {
    return ask(lane, op, std::move(words)).status;
}

uint64_t handle_from(TestLane& lane, GeneratedOp op, std::vector<uint64_t> words) {
    const Reply reply = ask(lane, op, std::move(words));
    REQUIRE(reply.status == CUDA_SUCCESS);
    return reply.as<uint64_t>();
}

uint64_t new_graph(TestLane& lane) { return handle_from(lane, GeneratedOp::kGraphCreate, {1, 0}); }
uint64_t add_node(TestLane& lane, uint64_t graph) {
    return handle_from(lane, GeneratedOp::kGraphAddEmptyNode, {1, graph, kNoArray, 0});
}
uint64_t add_child(TestLane& lane, uint64_t graph, uint64_t child) {
    return handle_from(lane, GeneratedOp::kGraphAddChildGraphNode, {1, graph, kNoArray, 0, child});
}
uint64_t child_of(TestLane& lane, uint64_t node) {
    return handle_from(lane, GeneratedOp::kGraphChildGraphNodeGetGraph, {1, node});
}
CUresult destroy_graph(TestLane& lane, uint64_t graph) {
    return status_of(lane, GeneratedOp::kGraphDestroy, {graph});
}
CUresult ask_type(TestLane& lane, uint64_t node) {
    return status_of(lane, GeneratedOp::kGraphNodeGetType, {1, node});
}

std::vector<uint64_t> nodes_of(TestLane& lane, uint64_t graph) {
    const Reply reply = ask(lane, GeneratedOp::kGraphGetNodes, {3, graph, 16, 16});
    REQUIRE(reply.status == CUDA_SUCCESS);
    Reader reader = reply.reader();
    uint64_t count = 0;
    const uint64_t* nodes = reader.array<uint64_t>(count);
    return std::vector<uint64_t>(nodes, nodes + reader.scalar<uint64_t>());
}

uint64_t new_mipmapped(TestLane& lane) {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = shape.Height = 16;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    alignas(8) char payload[256];
    Writer writer(payload, sizeof payload);
    writer.scalar<uint64_t>(1);
    writer.array(&shape, 1);
    writer.scalar<unsigned>(3);
    const Reply reply =
        lane.call(static_cast<uint16_t>(GeneratedOp::kMipmappedArrayCreate), payload, writer.used());
    REQUIRE(reply.status == CUDA_SUCCESS);
    return reply.as<uint64_t>();
}

uint32_t load_module(TestSession& client, TestLane& lane) {
    const Reply opened = lane.call(Op::kOpenStaging);
    REQUIRE(opened.status == CUDA_SUCCESS);
    const auto staging = opened.as<StagingOpened>();
    REQUIRE(lane.call(Op::kUploadBegin, UploadBegin{sizeof kTextureImage}).status == CUDA_SUCCESS);
    std::memcpy(reinterpret_cast<char*>(client.session().arena().base() + staging.offset), kTextureImage,
                sizeof kTextureImage);
    lane.post(Op::kUploadSlot, UploadSlot{0, sizeof kTextureImage, 0, 0, 1});
    const Reply loaded = lane.call(Op::kModuleLoad, ModuleLoad{});
    REQUIRE(loaded.status == CUDA_SUCCESS);
    return loaded.as<Loaded>().object;
}

Reply find_texture(TestLane& lane, uint32_t module) {
    alignas(8) char payload[128];
    Writer writer(payload, sizeof payload);
    writer.scalar<uint64_t>(1);
    writer.scalar(module);
    writer.string("picture");
    return lane.call(static_cast<uint16_t>(GeneratedOp::kModuleGetTexRef), payload, writer.used());
}

uint64_t new_user_object(TestLane& lane, uint64_t references) {
    return handle_from(lane, GeneratedOp::kUserObjectCreate,
                       {1, 0x10, 0x20, references, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC});
}

// Both at the same time, again and again; what each was answered.
struct Race {
    TestSession client;
    TestLane lanes[2] = {client.open_lane(), client.open_lane()};
    CUresult answers[2] = {};

    template <typename First, typename Second>
    void run(First first, Second second) {
        std::atomic<int> ready{0};
        const auto together = [&ready] {
            ready.fetch_add(1);
            while (ready.load() < 2) std::this_thread::yield();
        };
        std::thread other([&] {
            together();
            answers[1] = second(lanes[1]);
        });
        together();
        answers[0] = first(lanes[0]);
        other.join();
    }
    template <typename Call>
    void run(Call call) {
        run(call, call);
    }
    bool one_won() const {
        return (answers[0] == CUDA_SUCCESS) != (answers[1] == CUDA_SUCCESS) &&
               (answers[0] == CUDA_ERROR_INVALID_HANDLE || answers[1] == CUDA_ERROR_INVALID_HANDLE);
    }
};

TEST_CASE("what belongs to a graph goes with it", "[objects]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const uint64_t inner = new_graph(lane), middle = new_graph(lane), outer = new_graph(lane);
    add_node(lane, inner);
    add_child(lane, middle, inner);
    const uint64_t node = add_node(lane, outer), holder = add_child(lane, outer, middle);
    const uint64_t child = child_of(lane, holder), inner_holder = nodes_of(lane, child).at(0);
    const uint64_t grandchild = child_of(lane, inner_holder), leaf = nodes_of(lane, grandchild).at(0);
    CHECK(child_of(lane, holder) == child);
    CHECK(nodes_of(lane, outer) == std::vector<uint64_t>{node, holder});
    CHECK(ask_type(lane, leaf) == CUDA_SUCCESS);

    SECTION("when it is destroyed") { REQUIRE(destroy_graph(lane, outer) == CUDA_SUCCESS); }
    SECTION("and what belongs to a node goes with the node") {
        REQUIRE(status_of(lane, GeneratedOp::kGraphDestroyNode, {holder}) == CUDA_SUCCESS);
        CHECK(ask_type(lane, node) == CUDA_SUCCESS);
        REQUIRE(destroy_graph(lane, outer) == CUDA_SUCCESS);
    }
    for (uint64_t stale : {node, holder, inner_holder, leaf}) {
        CHECK(ask_type(lane, stale) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(status_of(lane, GeneratedOp::kGraphDestroyNode, {stale}) == CUDA_ERROR_INVALID_HANDLE);
    }
    for (uint64_t stale : {outer, child, grandchild}) {
        CHECK(status_of(lane, GeneratedOp::kGraphGetNodes, {3, stale, 16, 16}) == CUDA_ERROR_INVALID_HANDLE);
        CHECK(destroy_graph(lane, stale) == CUDA_ERROR_INVALID_HANDLE);
    }
    CHECK(nodes_of(lane, inner).size() == 1);  // the graphs that were copied live on
}

TEST_CASE("a child graph is its node's to destroy", "[objects]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const uint64_t graph = new_graph(lane), holder = add_child(lane, graph, new_graph(lane));
    const uint64_t child = child_of(lane, holder);
    CHECK(destroy_graph(lane, child) == CUDA_ERROR_INVALID_VALUE);
    CHECK(child_of(lane, holder) == child);
}

TEST_CASE("a level goes with its mipmapped array, a texture reference with its module", "[objects]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const uint64_t mipmapped = new_mipmapped(lane);
    const uint64_t level = handle_from(lane, GeneratedOp::kMipmappedArrayGetLevel, {1, mipmapped, 1});
    CHECK(handle_from(lane, GeneratedOp::kMipmappedArrayGetLevel, {1, mipmapped, 1}) == level);
    CHECK(status_of(lane, GeneratedOp::kArrayDestroy, {level}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(status_of(lane, GeneratedOp::kArray3DGetDescriptor_v2, {1, level}) == CUDA_SUCCESS);
    REQUIRE(status_of(lane, GeneratedOp::kMipmappedArrayDestroy, {mipmapped}) == CUDA_SUCCESS);
    CHECK(status_of(lane, GeneratedOp::kArray3DGetDescriptor_v2, {1, level}) == CUDA_ERROR_INVALID_HANDLE);
    const uint64_t next = new_mipmapped(lane);  // at the same place, as it may be
    const uint64_t next_level = handle_from(lane, GeneratedOp::kMipmappedArrayGetLevel, {1, next, 1});
    CHECK(next_level != level);
    CHECK(status_of(lane, GeneratedOp::kArray3DGetDescriptor_v2, {1, level}) == CUDA_ERROR_INVALID_HANDLE);

    const uint32_t module = load_module(client, lane);
    const Reply found = find_texture(lane, module);
    REQUIRE(found.status == CUDA_SUCCESS);
    const auto texture = found.as<uint64_t>();
    CHECK(find_texture(lane, module).as<uint64_t>() == texture);
    CHECK(status_of(lane, GeneratedOp::kTexRefSetFlags, {texture, 2}) == CUDA_SUCCESS);
    CHECK(ask(lane, GeneratedOp::kTexRefGetFlags, {1, texture}).as<unsigned>() == 2);
    REQUIRE(lane.call(Op::kModuleUnload, ObjectRef{module, ImageOwner::kModule}).status == CUDA_SUCCESS);
    CHECK(status_of(lane, GeneratedOp::kTexRefSetFlags, {texture, 1}) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(status_of(lane, GeneratedOp::kTexRefGetFlags, {1, texture}) == CUDA_ERROR_INVALID_HANDLE);
}

// The driver reuses addresses soon.
TEST_CASE("an id is used once, and by one session", "[objects]") {
    TestSession client, other;
    TestLane lane = client.open_lane(), neighbour = other.open_lane();
    std::set<uint64_t> ids;
    std::vector<uint64_t> nodes;
    for (int i = 0; i < 100; ++i) {
        const uint64_t graph = new_graph(lane), node = add_node(lane, graph);
        CHECK(ids.insert(graph).second);
        CHECK(ids.insert(node).second);
        nodes.push_back(node);
        REQUIRE(destroy_graph(lane, graph) == CUDA_SUCCESS);
        const uint64_t theirs = new_graph(neighbour);
        add_node(neighbour, theirs);
        CHECK(ask_type(lane, node) == CUDA_ERROR_INVALID_HANDLE);
        REQUIRE(destroy_graph(neighbour, theirs) == CUDA_SUCCESS);
    }
    const uint64_t last = new_graph(lane);
    for (int i = 0; i < 100; ++i) add_node(lane, last);
    for (uint64_t node : nodes) CHECK(ask_type(lane, node) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("of two lanes that destroy one object, one does", "[objects]") {
    Race race;
    TestLane& lane = race.lanes[0];
    for (int i = 0; i < kRounds; ++i) {
        const uint64_t graph = new_graph(lane), node = add_node(lane, graph);
        race.run([&](TestLane& each) { return status_of(each, GeneratedOp::kGraphDestroyNode, {node}); });
        REQUIRE(race.one_won());
        race.run([&](TestLane& each) { return destroy_graph(each, graph); });
        REQUIRE(race.one_won());
        const uint64_t mipmapped = new_mipmapped(lane);
        race.run([&](TestLane& each) {
            return status_of(each, GeneratedOp::kMipmappedArrayDestroy, {mipmapped});
        });
        REQUIRE(race.one_won());
        const uint64_t object = new_user_object(lane, 1);
        race.run(
            [&](TestLane& each) { return status_of(each, GeneratedOp::kUserObjectRelease, {object, 1}); });
        REQUIRE(race.one_won());
    }
}

TEST_CASE("what is destroyed on one lane is used on another, or is gone", "[objects]") {
    Race race;
    TestLane& lane = race.lanes[0];
    const auto used_or_gone = [](CUresult status) {
        return status == CUDA_SUCCESS || status == CUDA_ERROR_INVALID_HANDLE;
    };
    for (int i = 0; i < kRounds; ++i) {
        const uint64_t graph = new_graph(lane), node = add_node(lane, graph), inner = new_graph(lane);
        add_node(lane, inner);
        const uint64_t holder = add_child(lane, graph, inner), child = child_of(lane, holder);
        race.run([&](TestLane& each) { return status_of(each, GeneratedOp::kGraphDestroyNode, {holder}); },
                 [&](TestLane& each) {
                     return status_of(each, GeneratedOp::kGraphAddEmptyNode, {1, child, kNoArray, 0});
                 });
        REQUIRE(race.answers[0] == CUDA_SUCCESS);
        REQUIRE(used_or_gone(race.answers[1]));
        race.run([&](TestLane& each) { return destroy_graph(each, graph); },
                 [&](TestLane& each) {
                     const CUresult status =
                         status_of(each, GeneratedOp::kGraphAddEmptyNode, {1, graph, 1, node, 1});
                     return status == CUDA_SUCCESS ? ask_type(each, node) : status;
                 });
        REQUIRE(race.answers[0] == CUDA_SUCCESS);
        REQUIRE(used_or_gone(race.answers[1]));
        REQUIRE(destroy_graph(lane, inner) == CUDA_SUCCESS);
    }
}

TEST_CASE("a session releases the references that it has to user objects", "[objects]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const auto retain = [&](uint64_t graph, uint64_t object, uint64_t count, uint64_t flags) {
        return status_of(lane, GeneratedOp::kGraphRetainUserObject, {graph, object, count, flags});
    };
    const auto release = [&](uint64_t object, uint64_t count) {
        return status_of(lane, GeneratedOp::kUserObjectRelease, {object, count});
    };
    const auto release_from = [&](uint64_t graph, uint64_t object, uint64_t count) {
        return status_of(lane, GeneratedOp::kGraphReleaseUserObject, {graph, object, count});
    };
    const uint64_t graph = new_graph(lane), object = new_user_object(lane, 2);
    REQUIRE(retain(graph, object, 3, 0) == CUDA_SUCCESS);
    CHECK(release(object, 3) == CUDA_ERROR_INVALID_VALUE);  // the graph's are not the session's
    CHECK(retain(graph, object, 3, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_ERROR_INVALID_VALUE);
    CHECK(release_from(graph, object, 4) == CUDA_ERROR_INVALID_VALUE);
    CHECK(release_from(graph, object, 2) == CUDA_SUCCESS);
    CHECK(retain(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS);
    CHECK(release(object, 1) == CUDA_SUCCESS);
    // Two are the graph's by now, none the session's.
    CHECK(release(object, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(status_of(lane, GeneratedOp::kUserObjectRetain, {object, 1}) == CUDA_ERROR_INVALID_VALUE);
    CHECK(release_from(graph, object, 1) == CUDA_SUCCESS);

    const uint64_t copy = handle_from(lane, GeneratedOp::kGraphClone, {1, graph});
    REQUIRE(destroy_graph(lane, graph) == CUDA_SUCCESS);
    CHECK(release_from(copy, object, 1) == CUDA_SUCCESS);  // a copy has its own
    CHECK(release_from(copy, object, 1) == CUDA_ERROR_INVALID_HANDLE);
}

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
}  // namespace smt::tests
