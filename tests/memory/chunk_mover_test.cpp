// Chunks that leave the device and come back, and what goes wrong at each step.
#include "runtime/server/memory/chunk_mover.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/memory/chunk_device.h"

namespace smt::runtime::server {

namespace {

constexpr uint64_t kChunk = 64 << 10;
constexpr uint64_t kBase = 0x2000'0000'0000;
const std::vector<ChunkMover::Chunk> kChunks = {
    {kBase, kChunk}, {kBase + 4 * kChunk, 2 * kChunk}, {kBase + 8 * kChunk, kChunk}};
constexpr uint64_t kAll = 4 * kChunk;

struct Moving {
    tests::ChunkDevice device;
    int host_is_full_after = -1;  // so many blocks; -1: never
    uint64_t largest = ~0ull;     // of a block
    ChunkMover mover{
        device, [this](uint64_t bytes, const auto&, BlockProblem* problem) { return make(bytes, problem); }};

    Moving() {
        for (const auto& chunk : kChunks) device.make(chunk.base, chunk.bytes);
    }
    std::shared_ptr<StoredBlock> make(uint64_t bytes, BlockProblem* problem) {
        problem->missing = 11;
        if (host_is_full_after-- == 0) return nullptr;
        auto memory =
            HostBlock::make(device.driver(), std::min(bytes, largest), {~0ull, ~0ull}, &problem->missing);
        return std::make_shared<StoredBlock>(std::move(memory), nullptr, nullptr);
    }
    bool all_here() const {
        for (const auto& chunk : kChunks) {
            const auto found = device.mapped.find(chunk.base);
            if (found == device.mapped.end() ||
                found->second != tests::ChunkDevice::contents(chunk.base, chunk.bytes))
                return false;
        }
        return device.held_bytes == kAll && device.streams == 0;
    }
    bool all_away() const {
        return device.mapped.empty() && device.held_bytes == 0 && mover.bytes_away() == kAll &&
               mover.away().size() == kChunks.size();
    }
    void move_out() {
        REQUIRE(mover.copy_out(kChunks).status == CUDA_SUCCESS);
        for (const uint64_t base : mover.copied()) CHECK(mover.release(base) == CUDA_SUCCESS);
        CHECK(all_away());
    }
    void move_in() {
        REQUIRE(mover.bring_in(mover.away()).status == CUDA_SUCCESS);
        for (const uint64_t base : mover.copied()) mover.forget_copy(base);
        CHECK(all_here());
        CHECK(mover.bytes_away() == 0);
        CHECK(device.pinned == 0);
    }
};

}  // namespace

TEST_CASE("chunk mover: out and in, twice", "[chunk_mover]") {
    Moving moving;
    for (int i = 0; i < 2; ++i) {
        moving.move_out();
        CHECK(moving.device.pinned == 1);
        CHECK(moving.mover.pinned());
        moving.move_in();
    }
}

TEST_CASE("chunk mover: a chunk in several blocks, and a block of several chunks", "[chunk_mover]") {
    Moving moving;
    moving.largest = kChunk * 3 / 2;  // the second one begins in the first block
    moving.move_out();
    CHECK(moving.device.pinned == 3);
    moving.mover.bring_in({kBase});
    moving.mover.forget_copy(kBase);
    CHECK(moving.device.pinned == 3);  // the next chunk is in its block, too
    moving.move_in();
}

TEST_CASE("chunk mover: a copy is no move", "[chunk_mover]") {
    Moving moving;
    REQUIRE(moving.mover.copy_out(kChunks).status == CUDA_SUCCESS);
    CHECK(moving.all_here());
    CHECK(moving.mover.bytes_away() == 0);
    for (const auto& chunk : kChunks) moving.mover.forget_copy(chunk.base);
    CHECK(moving.device.pinned == 0);
    CHECK(moving.all_here());
    CHECK(moving.mover.release(kBase) == CUDA_ERROR_INVALID_VALUE);  // there is no copy of it
    CHECK(moving.mover.copy_out({}).status == CUDA_SUCCESS);
    CHECK(moving.all_here());
}

TEST_CASE("chunk mover: without host memory nothing moves", "[chunk_mover]") {
    Moving moving;
    const int blocks = GENERATE(0, 2);
    moving.largest = kChunk * 3 / 2;
    moving.host_is_full_after = blocks;
    const ChunkMover::Outcome outcome = moving.mover.copy_out(kChunks);
    CHECK(outcome.status == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(outcome.block.missing == 11);
    CHECK(moving.mover.copied().empty());
    CHECK(moving.device.pinned == 0);
    CHECK(moving.all_here());
}

TEST_CASE("chunk mover: a copy that fails leaves everything here", "[chunk_mover]") {
    const std::pair<const char*, int> failure =
        GENERATE(std::pair("cuMemcpyDtoHAsync", 1), std::pair("cuMemcpyDtoHAsync", 3),
                 std::pair("cuStreamSynchronize", 1), std::pair("cuStreamCreate", 1));
    Moving moving;
    moving.device.fails_at[failure.first] = failure.second;
    const ChunkMover::Outcome outcome = moving.mover.copy_out(kChunks);
    CHECK(outcome.status != CUDA_SUCCESS);
    CHECK(outcome.failed != nullptr);
    CHECK(outcome.block.missing == 0);
    CHECK(moving.mover.copied().empty());
    CHECK(moving.device.pinned == 0);
    CHECK(moving.all_here());
    moving.move_out();
    moving.move_in();
}

TEST_CASE("chunk mover: a chunk that is not unmapped stays here", "[chunk_mover]") {
    Moving moving;
    REQUIRE(moving.mover.copy_out(kChunks).status == CUDA_SUCCESS);
    moving.device.fails_at["cuMemUnmap"] = 2;
    CHECK(moving.mover.release(kChunks[0].base) == CUDA_SUCCESS);
    CHECK(moving.mover.release(kChunks[1].base) != CUDA_SUCCESS);
    CHECK(moving.mover.release(kChunks[2].base) == CUDA_SUCCESS);
    CHECK(moving.mover.away().size() == 2);
    CHECK(moving.mover.copied().empty());
    CHECK(moving.mover.bytes_away() == 2 * kChunk);
    CHECK(moving.device.held_bytes == 2 * kChunk);
    moving.move_in();
}

TEST_CASE("chunk mover: what does not come back stays in host memory, and comes later", "[chunk_mover]") {
    const std::pair<const char*, int> failure =
        GENERATE(std::pair("cuMemCreate", 1), std::pair("cuMemCreate", 3), std::pair("cuMemMap", 2),
                 std::pair("cuMemSetAccess", 3), std::pair("cuStreamCreate", 1),
                 std::pair("cuMemcpyHtoDAsync", 2), std::pair("cuStreamSynchronize", 1));
    Moving moving;
    moving.move_out();
    moving.device.fails_at[failure.first] = failure.second;
    const ChunkMover::Outcome outcome = moving.mover.bring_in(moving.mover.away());
    CHECK(outcome.status != CUDA_SUCCESS);
    CHECK(outcome.failed != nullptr);
    CHECK(moving.all_away());
    CHECK(moving.device.streams == 0);
    moving.move_in();
}

TEST_CASE("chunk mover: memory that cannot be given back meanwhile is filled the next time",
          "[chunk_mover]") {
    Moving moving;
    moving.move_out();
    moving.device.fails_at["cuMemcpyHtoDAsync"] = 1;
    moving.device.fails_at["cuMemUnmap"] = 2;  // the second chunk, when the first one was unmapped again
    CHECK(moving.mover.bring_in(moving.mover.away()).status != CUDA_SUCCESS);
    CHECK(moving.mover.bytes_away() == kAll);
    CHECK(moving.device.held_bytes == 2 * kChunk);
    CHECK(moving.mover.away().size() == kChunks.size());
    SECTION("and comes back") { moving.move_in(); }
    SECTION("or is given back with its chunk") {
        for (const auto& chunk : kChunks) CHECK_FALSE(moving.mover.drop(chunk.base));
        CHECK(moving.device.held_bytes == 0);
        CHECK(moving.mover.bytes_away() == 0);
    }
}

TEST_CASE("chunk mover: several steps back", "[chunk_mover]") {
    Moving moving;
    moving.move_out();
    REQUIRE(moving.mover.bring_in({kChunks[0].base, kChunks[2].base}).status == CUDA_SUCCESS);
    CHECK(moving.mover.bytes_away() == 2 * kChunk);
    for (const uint64_t base : moving.mover.copied()) CHECK(moving.mover.release(base) == CUDA_SUCCESS);
    CHECK(moving.all_away());
    moving.move_in();
}

TEST_CASE("chunk mover: one chunk at a time", "[chunk_mover]") {
    Moving moving;
    for (const auto& chunk : kChunks) {
        REQUIRE(moving.mover.copy_out({chunk}).status == CUDA_SUCCESS);
        CHECK(moving.mover.release(chunk.base) == CUDA_SUCCESS);
    }
    CHECK(moving.all_away());
    CHECK(moving.device.pinned == 3);
    REQUIRE(moving.mover.bring_in({kChunks[1].base}).status == CUDA_SUCCESS);
    moving.mover.forget_copy(kChunks[1].base);
    CHECK(moving.device.pinned == 2);
    CHECK(moving.mover.bytes_away() == 2 * kChunk);
    moving.move_in();
}

TEST_CASE("chunk mover: a chunk that is freed while it is away needs no memory", "[chunk_mover]") {
    Moving moving;
    moving.move_out();
    for (const auto& chunk : kChunks) CHECK_FALSE(moving.mover.drop(chunk.base));
    CHECK(moving.mover.bytes_away() == 0);
    CHECK(moving.device.pinned == 0);
    CHECK(moving.mover.drop(kBase));  // nothing is known of it: it is the caller's
}

}  // namespace smt::runtime::server
