// Memory and events of one session in another one: whose they are, how long they live, what they count as,
// and that nonsense about them is an error of the call.
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "opcodes.gen.h"
#include "runtime/protocol/server_key.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/neighbours.h"
#include "tests/unit/temporary_folder.h"
#include "tests/wire/server.h"

namespace smt::tests {
namespace {

using namespace protocol;

constexpr uint64_t kSharedBytes = 4u << 20;

uint64_t allocate_shared(TestLane& lane, uint64_t bytes = kSharedBytes) {
    const Reply reply = lane.call(Op::kMemAlloc, MemAlloc{bytes, 0, 0});
    REQUIRE(reply.status == CUDA_SUCCESS);
    return reply.as<MemAllocated>().address;
}

Reply ask_share(TestLane& lane, SharedKind kind, uint64_t object) {
    return lane.call(Op::kShare, Share{kind, 0, object});
}

ShareToken token_of(TestLane& lane, SharedKind kind, uint64_t object) {
    const Reply reply = ask_share(lane, kind, object);
    REQUIRE(reply.status == CUDA_SUCCESS);
    return reply.as<Shared>().token;
}

Reply ask_open(TestLane& lane, SharedKind kind, const ShareToken& token, uint32_t event = 0) {
    return lane.call(Op::kOpenShared, OpenShared{kind, event, token});
}

uint64_t open_memory(TestLane& lane, const ShareToken& token) {
    const Reply reply = ask_open(lane, SharedKind::kMemory, token);
    REQUIRE(reply.status == CUDA_SUCCESS);
    return reply.as<MemAllocated>().address;
}

CUresult ask_close(TestLane& lane, uint64_t address) {
    return lane.call(Op::kCloseShared, Address{address}).status;
}

// Copies eight bytes of the memory onto themselves.
CUresult copy_onto_itself(TestLane& lane, uint64_t address) {
    Copy copy{};
    copy.to = copy.from = {Place::kDevice, 0, address, 0, 0, 0, 0, 0};
    copy.width_bytes = 8;
    copy.height = copy.depth = 1;
    copy.answer = CopyAnswer::kDone;
    return lane.call(Op::kCopy, copy).status;
}

TEST_CASE("memory of another session of the tenant: an address of the session's own", "[sharing]") {
    TestSession one, two;
    TestLane exporter = one.open_lane(), importer = two.open_lane();
    for (const uint64_t bytes : {kSharedBytes, uint64_t{1000}}) {
        const uint64_t mine = allocate_shared(exporter, bytes);
        const ShareToken token = token_of(exporter, SharedKind::kMemory, mine + 8);
        const Reply opened = ask_open(importer, SharedKind::kMemory, token);
        REQUIRE(opened.status == CUDA_SUCCESS);
        const auto its = opened.as<MemAllocated>();
        CHECK(its.bytes == bytes);
        CHECK(two.session().memory().in_device_range(its.address, bytes));
        CHECK(two.session().memory().may_touch(its.address, bytes));
        CHECK_FALSE(two.session().memory().may_touch(mine, 1));
        CHECK(copy_onto_itself(importer, its.address) == CUDA_SUCCESS);
        CHECK(copy_onto_itself(importer, mine) == CUDA_ERROR_INVALID_VALUE);
        CHECK(open_memory(importer, token) == its.address);
        CHECK(importer.call(Op::kMemFree, Address{its.address}).status == CUDA_ERROR_INVALID_VALUE);
        CHECK(ask_close(importer, its.address + 8) == CUDA_ERROR_INVALID_VALUE);
        CHECK(ask_close(importer, its.address) == CUDA_SUCCESS);
        CHECK(ask_close(importer, its.address) == CUDA_SUCCESS);
        CHECK(ask_close(importer, its.address) == CUDA_ERROR_INVALID_VALUE);
        CHECK(exporter.call(Op::kMemFree, Address{mine}).status == CUDA_SUCCESS);
        CHECK(ask_open(importer, SharedKind::kMemory, token).status == CUDA_ERROR_INVALID_VALUE);
    }
}

TEST_CASE("another tenant gets nothing by a token", "[sharing]") {
    TestSession one, other(0, "stranger");
    TestLane exporter = one.open_lane(), lane = other.open_lane();
    runtime::server::Sharing& sharing = TestServer::get().server().sharing();
    const uint64_t before = sharing.refused();
    exporter.post(Op::kEventCreate, EventCreate{5, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING});
    CHECK(ask_open(lane, SharedKind::kMemory,
                   token_of(exporter, SharedKind::kMemory, allocate_shared(exporter)))
              .status == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask_open(lane, SharedKind::kEvent, token_of(exporter, SharedKind::kEvent, 5), 6).status ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(sharing.refused() == before + 2);
    CHECK(lane.call(Op::kEventSynchronize, EventRef{6, 0}).status == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("memory that an importer has counts as its exporter's until both have let go of it", "[sharing]") {
    TestSession one, two;
    TestLane exporter = one.open_lane(), importer = two.open_lane();
    const uint64_t mine = allocate_shared(exporter);
    const uint64_t its = open_memory(importer, token_of(exporter, SharedKind::kMemory, mine));
    REQUIRE(exporter.call(Op::kMemFree, Address{mine}).status == CUDA_SUCCESS);
    CHECK(copy_onto_itself(importer, its) == CUDA_SUCCESS);
    // It is not kept for the exporter's next allocation, which the importer could then write to.
    const uint64_t next = allocate_shared(exporter);
    CHECK(one.session().device_bytes() == 2 * kSharedBytes);
    CHECK(two.session().device_bytes() == 0);
    CHECK(ask_close(importer, its) == CUDA_SUCCESS);
    CHECK(one.session().device_bytes() == kSharedBytes);
    CHECK(exporter.call(Op::kMemFree, Address{next}).status == CUDA_SUCCESS);
}

TEST_CASE("an exporter that ends leaves its memory to those who have it open", "[sharing]") {
    TestSession two;
    TestLane importer = two.open_lane();
    uint64_t its = 0;
    ShareToken token{};
    {
        TestSession one;
        TestLane exporter = one.open_lane();
        token = token_of(exporter, SharedKind::kMemory, allocate_shared(exporter));
        its = open_memory(importer, token);
    }
    CHECK(copy_onto_itself(importer, its) == CUDA_SUCCESS);
    CHECK(ask_open(importer, SharedKind::kMemory, token).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask_close(importer, its) == CUDA_SUCCESS);
}

TEST_CASE("what is shared and what is opened keeps a session from a takeover", "[sharing]") {
    TestSession one, two, three;
    TestLane exporter = one.open_lane(), importer = two.open_lane(), waiter = three.open_lane();
    const uint64_t mine = allocate_shared(exporter);
    const uint64_t its = open_memory(importer, token_of(exporter, SharedKind::kMemory, mine));
    exporter.post(Op::kEventCreate, EventCreate{1, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING});
    const ShareToken event = token_of(exporter, SharedKind::kEvent, 1);
    REQUIRE(ask_open(waiter, SharedKind::kEvent, event, 9).status == CUDA_SUCCESS);
    const auto says = [](TestSession& session, const char* reason) {
        return session.session().why_not_carried().find(reason) != std::string::npos;
    };
    CHECK((says(one, "shares memory") && says(one, "shares events")));
    CHECK(says(two, "shares memory"));
    CHECK_FALSE(says(two, "shares events"));
    CHECK(says(three, "shares events"));
    CHECK(ask_close(importer, its) == CUDA_SUCCESS);
    CHECK_FALSE(says(two, "shares memory"));
}

TEST_CASE("an event of two sessions is one: what either records, both wait for", "[sharing]") {
    TestSession one, two;
    TestLane first = one.open_lane(), second = two.open_lane();
    first.post(Op::kEventCreate, EventCreate{1, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING});
    first.post(Op::kEventCreate, EventCreate{2, 0});
    CHECK(ask_share(first, SharedKind::kEvent, 2).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask_share(first, SharedKind::kEvent, 3).status == CUDA_ERROR_INVALID_HANDLE);
    const ShareToken token = token_of(first, SharedKind::kEvent, 1);
    REQUIRE(ask_open(second, SharedKind::kEvent, token, 7).status == CUDA_SUCCESS);
    CHECK(ask_open(second, SharedKind::kEvent, token, ~0u).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(ask_open(first, SharedKind::kEvent, token, 4).status == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(first.call(Op::kEventRecord, EventRecord{1, kLegacyStream, 0, 0, 0}).status == CUDA_SUCCESS);
    CHECK(second.call(Op::kStreamWaitEvent, StreamWaitEvent{kLegacyStream, 7, 0, 0}).status == CUDA_SUCCESS);
    CHECK(second.call(Op::kEventRecord, EventRecord{7, kLegacyStream, 0, 0, 0}).status == CUDA_SUCCESS);
    CHECK(first.call(Op::kEventSynchronize, EventRef{1, 0}).status == CUDA_SUCCESS);
    first.post(Op::kEventDestroy, EventRef{1, 0});
    CHECK(second.call(Op::kEventSynchronize, EventRef{7, 0}).status == CUDA_SUCCESS);
    CHECK(ask_open(second, SharedKind::kEvent, token, 8).status ==
          CUDA_SUCCESS);  // the second session holds it
}

TEST_CASE("a session of this GPU is no peer of another one, and no unknown server has anything",
          "[sharing]") {
    TestSession one, two;
    TestLane exporter = one.open_lane(), importer = two.open_lane();
    const uint64_t mine = allocate_shared(exporter);
    const Shared shared = ask_share(exporter, SharedKind::kPeer, mine + 8).as<Shared>();
    CHECK(shared.base == mine);
    CHECK(shared.bytes == kSharedBytes);
    for (const uint64_t server : {uint64_t{0}, shared.server, shared.server ^ 1, ~uint64_t{0}})
        for (const SharedKind kind :
             {SharedKind::kPeer, SharedKind::kMemory, SharedKind::kPhysical, SharedKind::kPeerPhysical}) {
            const Reply reply = importer.call(Op::kOpenShared, OpenShared{kind, 0, shared.token, server});
            CHECK(reply.status == CUDA_ERROR_INVALID_VALUE);
        }
    CHECK_FALSE(two.session().memory().may_touch(mine, 1));
    for (const uint64_t wild : {uint64_t{0}, mine, ~uint64_t{0}})
        CHECK(importer.call(Op::kClosePeer, AddressRange{wild, 1}).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(importer.call(Op::kMemMap, MemMap{mine, kSharedBytes, 0, 77, 0}).status != CUDA_SUCCESS);
    CHECK(importer.call(Op::kSetAccess, SetAccess{mine, kSharedBytes, 3, 0}).status ==
          CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a peer's memory that was made anew where other memory was is mapped anew", "[sharing]") {
    constexpr uint64_t kChunk = 2 << 20, kPeerBase = 0x6fff'0000'0000;
    TestSession client;
    runtime::device::Device& device = TestServer::get().device();
    REQUIRE(device.enter_thread() == CUDA_SUCCESS);
    runtime::server::TenantMemory& memory = client.session().memory();
    const auto make = [&](uint64_t base, uint64_t bytes, uint64_t offset, uint64_t number) {
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.device()};
        CUmemGenericAllocationHandle handle = 0;
        REQUIRE(device.driver().cuMemCreate(&handle, bytes, &properties, 0) == CUDA_SUCCESS);
        auto physical = std::make_shared<runtime::server::PhysicalAllocation>(
            device, bytes, runtime::server::Charge(), 0, false);
        physical->own_handle(handle);
        return runtime::server::SharedBlock{physical, offset, 512, base, true, number};
    };
    const auto is_mapped = [&](uint64_t at, const runtime::server::SharedBlock& block) {
        CUmemGenericAllocationHandle found = 0;
        REQUIRE(device.driver().cuMemRetainAllocationHandle(&found, reinterpret_cast<void*>(at)) ==
                CUDA_SUCCESS);
        device.driver().cuMemRelease(found);
        return found == block.memory->handle();
    };
    const auto first = make(kPeerBase, kChunk, 0, 1), same = make(kPeerBase, kChunk, 512, 1);
    REQUIRE(memory.open_peer(first) == CUDA_SUCCESS);
    CHECK_FALSE(memory.open_otherwise(same));
    REQUIRE(memory.open_peer(same) == CUDA_SUCCESS);  // a second block of the chunk
    CHECK(is_mapped(kPeerBase, first));
    const auto other = make(kPeerBase, kChunk, 512, 2);
    CHECK(memory.open_otherwise(other));
    REQUIRE(memory.open_peer(other) == CUDA_SUCCESS);
    CHECK(is_mapped(kPeerBase, other));
    const auto larger = make(kPeerBase - kChunk, 2 * kChunk, kChunk, 3);
    REQUIRE(memory.open_peer(larger) == CUDA_SUCCESS);
    CHECK(is_mapped(kPeerBase, larger));
    // What is gone is open no more.
    CHECK(memory.close_peer(kPeerBase, 512) == CUDA_SUCCESS);
    CHECK(memory.close_peer(kPeerBase - kChunk, 2 * kChunk) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a socket whose name is no server's key is not asked", "[sharing]") {
    TemporaryFolder folder;
    for (const std::string name : {"device", "no key"}) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        folder.file(name + ".sock").copy(address.sun_path, sizeof address.sun_path - 1);
        const int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        REQUIRE(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(listen(listening, 1) == 0);
        std::atomic<int> asked{0};
        std::thread serving([&] {
            for (int each; (each = accept(listening, nullptr, nullptr)) >= 0; close(each)) ++asked;
        });
        runtime::server::Neighbours neighbours(TestServer::get().device());
        neighbours.are_in(folder.path());
        runtime::server::SharedBlockPointer block;
        const OpenShared wanted{SharedKind::kMemory, 0, {}, server_number(name)};
        CHECK(neighbours.fetch(wanted, "family", &block) == CUDA_ERROR_INVALID_VALUE);
        shutdown(listening, SHUT_RDWR);
        serving.join();
        close(listening);
        CHECK(asked == (name == "device" ? 1 : 0));
    }
}

TEST_CASE("nonsense about shared objects is an error of the call", "[sharing]") {
    TestSession one;
    TestLane lane = one.open_lane();
    const uint64_t mine = allocate_shared(lane);
    const std::vector<uint64_t> wild_values{0, 8, mine + kSharedBytes, ~0ull,
                                            one.device_base() + (1ull << 38)};
    for (const uint64_t wild : wild_values) {
        CHECK(ask_share(lane, SharedKind::kMemory, wild).status == CUDA_ERROR_INVALID_VALUE);
        CHECK(ask_share(lane, SharedKind::kPhysical, wild).status == CUDA_ERROR_INVALID_VALUE);
        CHECK(ask_close(lane, wild) == CUDA_ERROR_INVALID_VALUE);
    }
    for (const uint32_t kind : {0u, 6u, ~0u}) {
        CHECK(ask_share(lane, static_cast<SharedKind>(kind), mine).status == CUDA_ERROR_INVALID_VALUE);
        CHECK(ask_open(lane, static_cast<SharedKind>(kind), ShareToken{}).status == CUDA_ERROR_INVALID_VALUE);
    }
    CHECK(lane.call(Op::kShare, uint32_t{1}).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(lane.call(Op::kOpenShared, uint32_t{1}).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(lane.call(Op::kCloseShared).status == CUDA_ERROR_INVALID_VALUE);
    const int file = memfd_create("test", MFD_CLOEXEC);
    const Descriptor unknown{};
    for (const int each : {-1, file}) one.send_control(&unknown, sizeof unknown, each);
    one.open_lane();
    CHECK_FALSE(one.hung_up());
    close(file);
}

}  // namespace
}  // namespace smt::tests
