// The server's end of a lane, fed with records made by hand: what layout.h and record.h promise.
#include "runtime/server/lane.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "opcodes.gen.h"
#include "runtime/server/code/code_table.h"
#include "tests/wire/server.h"

namespace smt::tests {
namespace {

using namespace protocol;

constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\n";
constexpr uint16_t kNoOp = 255;

// Waits for the word of a staging slot.
void await_slot(TestSession& client, const StagingOpened& staging, uint64_t value) {
    auto& word = client.session().arena().word(staging.first_word);
    await([&] { return word.load(std::memory_order_acquire) >= value; }, "the staging slot is free");
}

char* slot_of(TestSession& client, const StagingOpened& staging) {
    return reinterpret_cast<char*>(client.session().arena().base() + staging.offset);
}

uint32_t load_function(TestSession& client, TestLane& lane, const StagingOpened& staging, const char* name) {
    REQUIRE(lane.call(Op::kUploadBegin, UploadBegin{sizeof kImage}).status == CUDA_SUCCESS);
    std::memcpy(slot_of(client, staging), kImage, sizeof kImage);
    lane.post(Op::kUploadSlot, UploadSlot{0, sizeof kImage, 0, 0, 1});
    await_slot(client, staging, 1);
    const Reply loaded = lane.call(Op::kModuleLoad, ModuleLoad{});
    REQUIRE(loaded.status == CUDA_SUCCESS);
    char payload[64];
    Writer writer(payload, sizeof payload);
    writer.scalar(ObjectRef{loaded.as<Loaded>().object, ImageOwner::kModule});
    writer.string(name);
    const Reply found = lane.call(static_cast<uint16_t>(Op::kGetFunction), payload, writer.used());
    REQUIRE(found.status == CUDA_SUCCESS);
    CHECK(found.as<FunctionInfo>().parameter_count == 3);
    return found.as<FunctionInfo>().function;
}

TEST_CASE("what is known of a kernel with a door is looked up again when its attributes change", "[lane]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const Reply opened = lane.call(Op::kOpenStaging);
    REQUIRE(opened.status == CUDA_SUCCESS);
    const uint32_t fill = load_function(client, lane, opened.as<StagingOpened>(), "fill");
    runtime::server::LoadedKernel* const kernel = client.session().code().find(fill);
    kernel->at_door.form = runtime::dispatch::Form::kDoor;  // as after CodeTable::fetch()
    kernel->at_door.function = kernel->function;
    const auto set = [&](CUfunction_attribute attribute, int value) {
        kernel->at_door.set_fitting(128, 0, 7);
        return lane.call(Op::kFunctionAttribute, FunctionAttribute{fill, attribute, value, 0}).status;
    };
    const auto known = [&] { return kernel->at_door.fitting(128, 0); };
    CHECK(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50) == CUDA_SUCCESS);
    CHECK(known() == 0);
    CHECK(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50) == CUDA_SUCCESS);
    CHECK(known() == 7);  // some programs set it before each launch
    CHECK(set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(known() == 7);
    CHECK(kernel->at_door.cluster == 1);
    CHECK(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2) == CUDA_SUCCESS);
    CHECK(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 3) == CUDA_SUCCESS);
    CHECK(kernel->at_door.cluster == 6);
    CHECK(known() == 0);
}

TEST_CASE("an image, a launch and a copy, record by record", "[lane]") {
    constexpr int kNumbers = 100;
    TestSession client;
    TestLane lane = client.open_lane();
    const Reply opened = lane.call(Op::kOpenStaging);
    REQUIRE(opened.status == CUDA_SUCCESS);
    const auto staging = opened.as<StagingOpened>();
    const uint32_t fill = load_function(client, lane, staging, "fill");
    const Reply allocated = lane.call(Op::kMemAlloc, MemAlloc{kNumbers * sizeof(int), 0, 0});
    REQUIRE(allocated.status == CUDA_SUCCESS);
    const uint64_t memory = allocated.as<MemAllocated>().address;
    CHECK(client.session().device_bytes() >= kNumbers * sizeof(int));

    struct {
        protocol::Launch launch{};
        uint64_t to;
        int value = 42, count = kNumbers;
    } launch;
    launch.to = memory;
    launch.launch = {fill, kLegacyStream, {1, 1, 1}, {1, 1, 1}, 0, 0, 16, 0};
    lane.post(Op::kLaunch, launch);
    CopySlot copy{};
    copy.device.place = Place::kDevice;
    copy.device.address = memory;
    copy.width_bytes = kNumbers * sizeof(int);
    copy.height = copy.depth = 1;
    copy.done_value = 2;
    lane.post(Op::kCopySlot, copy);
    await_slot(client, staging, 2);
    CHECK(lane.take_error() == CUDA_SUCCESS);
    std::vector<int> numbers(kNumbers);
    std::memcpy(numbers.data(), slot_of(client, staging), copy.width_bytes);
    for (int number : numbers) CHECK(number == 42);

    // The second of two in a slot, and one that goes beyond its end.
    std::memset(slot_of(client, staging) + 256, 7, sizeof(int));
    copy.width_bytes = sizeof(int);
    copy.to_device = 1;
    copy.offset = 256;
    copy.done_value = 3;
    lane.post(Op::kCopySlot, copy);
    copy.offset = static_cast<uint32_t>(protocol::kStagingSlotBytes) - 2;
    copy.done_value = 4;
    lane.post(Op::kCopySlot, copy);
    await_slot(client, staging, 4);
    CHECK(lane.take_error() == CUDA_ERROR_INVALID_VALUE);
    copy.to_device = copy.offset = 0;
    copy.done_value = 5;
    lane.post(Op::kCopySlot, copy);
    await_slot(client, staging, 5);
    CHECK(*reinterpret_cast<const int*>(slot_of(client, staging)) == 0x07070707);

    CHECK(lane.call(Op::kMemFree, Address{memory}).status == CUDA_SUCCESS);
    CHECK(lane.call(Op::kMemFree, Address{memory}).status == CUDA_ERROR_INVALID_VALUE);
    client.leave();
    CHECK(TestServer::get().server().status().device_bytes == 0);
}

TEST_CASE("a record without a reply leaves its first error in the lane", "[lane]") {
    TestSession client;
    TestLane lane = client.open_lane();
    lane.post(Op::kEventDestroy, EventRef{7, 0});
    lane.post(kNoOp, nullptr, 0);
    CHECK(lane.call(Op::kContextSynchronize).status == CUDA_SUCCESS);
    CHECK(lane.take_error() == CUDA_ERROR_INVALID_HANDLE);
    CHECK(lane.call(kNoOp, nullptr, 0).status == CUDA_ERROR_INVALID_VALUE);
    CHECK(lane.take_error() == CUDA_SUCCESS);
    CHECK_FALSE(client.hung_up());
}

TEST_CASE("no operation is hurt by a payload that is too short, or by one of ones", "[lane]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const std::vector<unsigned char> ones(512, 0xff);
    for (uint16_t op = 1; op < 1200; ++op) {
        if (op == static_cast<uint16_t>(Op::kCloseLane)) continue;
        if (op == static_cast<uint16_t>(Op::kWaitLane)) continue;  // no reply, its own cases are below
        INFO("operation " << op);
        lane.call(op, nullptr, 0);
        CHECK(lane.call(op, ones.data(), 4).status != CUDA_ERROR_UNKNOWN);
        lane.call(op, ones.data(), ones.size());
    }
    CHECK(lane.call(Op::kContextSynchronize).status == CUDA_SUCCESS);
    CHECK_FALSE(client.hung_up());
}

TEST_CASE("the ring goes round and pads are skipped", "[lane]") {
    TestSession client;
    TestLane lane = client.open_lane();
    const std::vector<char> payload(kMaxRecordBytes - sizeof(RecordHeader) - 32);
    for (uint64_t i = 0; lane.position() < 4 * kRingBytes; ++i) {
        lane.post(static_cast<uint16_t>(Op::kContextSynchronize), payload.data(),
                  payload.size() - i % 7 * 64);
    }
    CHECK(lane.call(Op::kMemInfo).status == CUDA_SUCCESS);
    lane.await_reached(lane.position());
    CHECK(lane.take_error() == CUDA_SUCCESS);
}

TEST_CASE("a lane waits for another's position", "[lane]") {
    TestSession client;
    TestLane first = client.open_lane(), second = client.open_lane(), other = client.open_lane();
    // Streams are numbered in the order in which they are made.
    second.post(Op::kWaitLane, WaitLane{first.index(), 0, 2 * (sizeof(RecordHeader) + 16)});
    const StreamCreate make{CU_STREAM_NON_BLOCKING, 0};
    second.post(static_cast<uint16_t>(Op::kStreamCreate), &make, sizeof make, kWantsReply, 1);
    for (int i = 0; i < 200; ++i) CHECK(other.call(Op::kMemInfo).status == CUDA_SUCCESS);
    first.post(Op::kStreamCreate, make);  // 32 bytes a record: the second one ends where it is waited for
    CHECK(first.call(Op::kStreamCreate, make).as<StreamCreated>().stream == kFirstStream + 1);
    await([&] { return second.header().reply_seq.load(std::memory_order_acquire) == 1; }, "the reply came");
    CHECK(second.header().reply_status == CUDA_SUCCESS);
    StreamCreated created;
    std::memcpy(&created, reinterpret_cast<char*>(&second.header()) + kLaneReplyOffset, sizeof created);
    CHECK(created.stream == kFirstStream + 2);
}

TEST_CASE(
    "a thread that waits for a lane that has ended, or for itself, goes on; a lane that never was is an "
    "error",
    "[lane]") {
    TestSession client;
    TestLane ended = client.open_lane(), lane = client.open_lane();
    ended.post(static_cast<uint16_t>(Op::kCloseLane), nullptr, 0);
    lane.post(Op::kWaitLane, WaitLane{ended.index(), 0, ~0ull});
    lane.post(Op::kWaitLane, WaitLane{lane.index(), 0, ~0ull});
    CHECK(lane.call(Op::kContextSynchronize).status == CUDA_SUCCESS);
    CHECK(lane.take_error() == CUDA_SUCCESS);
    CHECK(client.session().lane_count() == 1);
    lane.post(Op::kWaitLane, WaitLane{99, 0, 0});
    CHECK(lane.call(Op::kContextSynchronize).status == CUDA_SUCCESS);
    CHECK(lane.take_error() == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a client that dies while a lane waits for ever leaves nothing behind", "[lane]") {
    TestSession client;
    TestLane lane = client.open_lane(), other = client.open_lane();
    REQUIRE(lane.call(Op::kMemAlloc, MemAlloc{1 << 20, 0, 0}).status == CUDA_SUCCESS);
    REQUIRE(lane.call(Op::kHostAlloc, MemAlloc{1 << 20, 0, 0}).status == CUDA_SUCCESS);
    lane.post(Op::kWaitLane, WaitLane{other.index(), 0, ~0ull});
    lane.post(Op::kStreamCreate, StreamCreate{0, 0});
    client.leave();
    const StatusReply status = TestServer::get().server().status();
    CHECK(status.sessions == 0);
    CHECK(status.device_bytes == 0);
    CHECK(status.host_bytes == 0);
}

TEST_CASE("a corrupt ring ends its own session only", "[lane]") {
    TestSession good;
    TestLane lane = good.open_lane();
    for (const RecordHeader header : {RecordHeader{0, 23, 0, 0, 0},
                                      {24, 23, 0, 0, 0},
                                      {1 << 20, 23, 0, 0, 0},
                                      {64, 23, 0, 0, 49},
                                      {64, 23, kStamped, 0, 33},  // its payload reaches into the stamp
                                      {16, 23, kStamped, 0, 0},   // no room for the stamp
                                      {8, 0, 0, 0, 0}}) {
        TestSession bad;
        TestLane broken = bad.open_lane();
        std::memcpy(broken.ring(), &header, sizeof header);
        broken.publish(64);
        bad.await_end();
        CHECK(lane.call(Op::kMemInfo).status == CUDA_SUCCESS);
    }
    CHECK_FALSE(good.hung_up());
}

TEST_CASE("a tenant's limit is its own", "[lane]") {
    TestSession limited(8 << 20, "limited"), other;
    TestLane small = limited.open_lane(), large = other.open_lane();
    CHECK(small.call(Op::kMemAlloc, MemAlloc{16 << 20, 0, 0}).status == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(large.call(Op::kMemAlloc, MemAlloc{16 << 20, 0, 0}).status == CUDA_SUCCESS);
    CHECK(small.call(Op::kMemAlloc, MemAlloc{4 << 20, 0, 0}).status == CUDA_SUCCESS);
}

TEST_CASE("the index of a closed lane is used again, and its positions go on", "[lane]") {
    TestSession client;
    TestLane first = client.open_lane();
    uint64_t position = 0;
    for (int i = 0; i < 5; ++i) {
        TestLane lane = client.open_lane();
        CHECK(lane.index() == 1);
        CHECK(lane.position() == position);
        REQUIRE(lane.call(Op::kMemInfo).status == CUDA_SUCCESS);
        const uint64_t before = lane.position();
        lane.post(static_cast<uint16_t>(Op::kCloseLane), nullptr, 0);
        const auto twin = client.session().lane(1);
        await([&] { return twin->ended(); }, "the lane has ended");
        position = before;
        // A wait for what the lane did before its end returns at once.
        first.post(Op::kWaitLane, WaitLane{1, 0, before});
        CHECK(first.call(Op::kMemInfo).status == CUDA_SUCCESS);
        TestLane again = client.open_lane();
        CHECK(again.index() == 1);
        first.post(Op::kWaitLane, WaitLane{1, 0, before});
        CHECK(first.call(Op::kMemInfo).status == CUDA_SUCCESS);
        again.post(static_cast<uint16_t>(Op::kCloseLane), nullptr, 0);
        const auto next = client.session().lane(1);
        await([&] { return next->ended(); }, "the lane has ended");
    }
    CHECK(client.session().lane_count() == 1);
}

TEST_CASE("a session has so many streams, and another one has its own", "[lane]") {
    const uint32_t most = TestServer::get().server().quotas().streams;
    TestSession client, neighbour;
    TestLane lane = client.open_lane(), other = neighbour.open_lane();
    uint32_t last = 0;
    for (uint32_t i = 0; i < most; ++i) {
        const Reply made = lane.call(Op::kStreamCreate, StreamCreate{CU_STREAM_NON_BLOCKING, 0});
        REQUIRE(made.status == CUDA_SUCCESS);
        last = made.as<StreamCreated>().stream;
    }
    for (int i = 0; i < 3; ++i)
        CHECK(lane.call(Op::kStreamCreate, StreamCreate{CU_STREAM_NON_BLOCKING, 0}).status ==
              CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(other.call(Op::kStreamCreate, StreamCreate{CU_STREAM_NON_BLOCKING, 0}).status == CUDA_SUCCESS);
    REQUIRE(lane.call(Op::kStreamDestroy, StreamRef{last, 0}).status == CUDA_SUCCESS);
    CHECK(lane.call(Op::kStreamCreate, StreamCreate{CU_STREAM_NON_BLOCKING, 0}).status == CUDA_SUCCESS);
}

}  // namespace
}  // namespace smt::tests
