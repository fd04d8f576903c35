// Every struct of record.h and handshake.h goes through the codec and comes out the same; cut short, it is
// refused.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "runtime/protocol/codec.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/record.h"

namespace smt::protocol {
namespace {

TEMPLATE_TEST_CASE("a record's struct comes back as it was written, or not at all", "[records]", WaitLane,
                   StagingOpened, Launch, CopyEnd, Copy, CopySlot, EventRef, EventCreate, EventRecord,
                   EventPair, StreamWaitEvent, StreamRef, StreamCreate, StreamCreated, StreamCapture,
                   MemAlloc, MemAllocated, Address, MemInfo, MemAllocAsync, MemFreeAsync, AddressReserve,
                   AddressRange, UploadBegin, UploadSlot, Download, ModuleLoad, JitOption, Loaded, ObjectRef,
                   FunctionNames, ParameterInfo, FunctionInfo, FunctionAttribute, HostFunction,
                   GraphKernelNode, GraphCopyNode, GraphHostNode, GraphChildNode, GraphLaunch, CaptureInfo,
                   StreamUpdateCapture, LinkCreate, LinkResult, LinkAdd, Hello, Welcome, Mapped, OpenLane,
                   LaneOpened, StatusRequest, StatusReply, DeviceReply, TenantStatus, PolicyRequest,
                   MemoryLimitRequest, TermsRequest, ChangeReply, SuspendRequest, SuspendReply) {
    static_assert(std::is_trivially_copyable_v<TestType> && alignof(TestType) <= 8);
    std::mt19937_64 source(sizeof(TestType));
    unsigned char bytes[sizeof(TestType)];
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(source());
    TestType value;
    std::memcpy(static_cast<void*>(&value), bytes, sizeof value);

    alignas(8) char data[1024];
    Writer writer(data, sizeof data);
    writer.scalar<uint64_t>(1);
    writer.scalar(value);
    writer.scalar<uint64_t>(2);
    REQUIRE(writer.good());
    Reader reader(data, writer.used());
    CHECK(reader.scalar<uint64_t>() == 1);
    TestType back = reader.template scalar<TestType>();
    CHECK(std::memcmp(&back, bytes, sizeof back) == 0);
    CHECK(reader.scalar<uint64_t>() == 2);
    CHECK(reader.good());

    Reader cut(data + 8, sizeof(TestType) - 1);
    cut.template scalar<TestType>();
    CHECK_FALSE(cut.good());
    Writer small(data, sizeof(TestType) - 1);
    small.scalar(value);
    CHECK_FALSE(small.good());
}

}  // namespace
}  // namespace smt::protocol
