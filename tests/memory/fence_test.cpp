// What kernels find in a session's fence (runtime/server/memory/fence.h).
#include "runtime/server/memory/fence.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/memory/chunk_device.h"

using namespace smt;
using runtime::server::Fence;

namespace {

constexpr uint64_t kWindow = 1ull << 40, kGranules = 64, kG = kFenceGranule;

struct Opened {
    tests::ChunkDevice device;
    FenceRecord record{};
    uint32_t told = 0;
    Fence fence{device, [] { return true; }};

    Opened() { REQUIRE(fence.open(kWindow, kGranules * kG, &record, &told) == CUDA_SUCCESS); }
    const char* bytes() { return device.mapped.begin()->second.data(); }
    FenceBlock block() {
        FenceBlock found;
        std::memcpy(&found, bytes(), sizeof found);
        return found;
    }
    std::string table() {  // the first granules
        std::string text;
        for (int i = 0; i < 8; ++i) text += static_cast<char>('0' + bytes()[sizeof(FenceBlock) + i]);
        return text;
    }
    void open(uint64_t first, uint64_t count) {
        REQUIRE(fence.open_to(kWindow + first * kG, count * kG) == CUDA_SUCCESS);
    }
    void close(uint64_t first, uint64_t count) { fence.close_to(kWindow + first * kG, count * kG); }
    // First granule and length of the run.
    std::pair<uint64_t, uint64_t> run() {
        const FenceBlock found = block();
        return {found.run_bytes ? (found.run - kWindow) / kG : 0, found.run_bytes / kG};
    }
};

using Run = std::pair<uint64_t, uint64_t>;

}  // namespace

TEST_CASE("a fence begins closed, and says where its record goes", "[fence]") {
    Opened it;
    const FenceBlock block = it.block();
    CHECK(block.run_bytes == 0);
    CHECK(block.window == kWindow);
    CHECK(block.window_bytes == kGranules * kG);
    CHECK(block.error == 0);
    CHECK(block.record == reinterpret_cast<uint64_t>(&it.record));
    CHECK(block.told == reinterpret_cast<uint64_t>(&it.told));
    CHECK(it.table() == "00000000");
}

TEST_CASE("the run is the longest row of open granules", "[fence]") {
    Opened it;
    it.open(1, 2);
    CHECK(it.table() == "01100000");
    CHECK(it.run() == Run(1, 2));
    it.open(4, 1);
    CHECK(it.run() == Run(1, 2));
    it.open(3, 1);  // joins both
    CHECK(it.table() == "01111000");
    CHECK(it.run() == Run(1, 4));
    it.close(2, 1);
    CHECK(it.table() == "01011000");
    CHECK(it.run() == Run(3, 2));
    it.close(3, 2);
    CHECK(it.run() == Run(1, 1));
    it.close(1, 1);
    CHECK(it.table() == "00000000");
    CHECK(it.run().second == 0);
}

TEST_CASE("what is not in the window is none of the fence's", "[fence]") {
    Opened it;
    CHECK(it.fence.open_to(kWindow - kG, kG) == CUDA_SUCCESS);
    CHECK(it.fence.open_to(kWindow + (kGranules - 1) * kG, 2 * kG) == CUDA_SUCCESS);
    it.close(5, 1);  // was not open
    CHECK(it.run().second == 0);
    CHECK(it.table() == "00000000");
}

TEST_CASE("memory that cannot be opened to is an error", "[fence]") {
    Opened it;
    it.device.fails_at["cuMemcpyHtoDAsync"] = 1;
    CHECK(it.fence.open_to(kWindow, kG) != CUDA_SUCCESS);
    CHECK(it.run().second == 0);
}

TEST_CASE("a record is one when its error is there", "[fence]") {
    Opened it;
    CHECK_FALSE(it.fence.fault());
    it.record.address = 64;
    it.record.error = 700;
    REQUIRE(it.fence.fault());
    CHECK(it.fence.fault()->address == 64);
}
