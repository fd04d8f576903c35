// The server's objects: an id means one object for as long as it lives, and no driver call gets an object
// that is gone, whichever lane destroyed it.
#include "tests/wire/objects.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <vector>

namespace smt::tests::objects {
namespace {

constexpr char kTextureImage[] = "FAKE\nkernel fill params 8,4,4\ntexture picture\n";

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

}  // namespace
}  // namespace smt::tests::objects
