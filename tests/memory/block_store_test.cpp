// Chunks that leave the device where host memory has no room for them, and disks that fail meanwhile.
#include "runtime/server/memory/block_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <set>
#include <thread>

#include "runtime/server/memory/chunk_mover.h"
#include "tests/memory/chunk_device.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr uint64_t kStoredBlock = 64 << 10, kStoredChunk = 48 << 10;  // chunks cross the ends of blocks
constexpr uint64_t kStoredBase = 0x2000'0000'0000;

std::atomic<bool> disk_is_full{false}, disk_fails{false};
std::atomic<int> reads{0};

ssize_t write_there(int file, const void* from, size_t bytes, off_t at) {
    if (disk_is_full) return errno = ENOSPC, -1;
    return pwrite(file, from, bytes, at);
}
ssize_t read_there(int file, void* to, size_t bytes, off_t at) {
    ++reads;
    if (disk_fails) return errno = EIO, -1;
    return pread(file, to, bytes, at);
}

// What the store's thread does. `state`: what is seen instead.
template <typename Fact, typename State>
void await(const char* what, Fact fact, State state) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!fact()) {
        if (std::chrono::steady_clock::now() > until) FAIL(what << " within a minute: " << state());
        std::this_thread::yield();
    }
}

struct Stored {
    static constexpr int kChunks = 16;
    static constexpr uint64_t kAll = kChunks * kStoredChunk;

    explicit Stored(uint64_t most, bool with_file = true) {
        disk_is_full = disk_fails = false;
        reads = 0;
        REQUIRE(mkdtemp(folder.data()));
        std::string problem;
        if (with_file) file = SwapFile::open(folder, kStoredBlock, &problem, {write_there, read_there});
        CHECK(problem.empty());
        store = std::make_shared<BlockStore>(
            spare, file, most, [this](const std::string& line) { notes.insert(line); }, kStoredBlock);
        for (int i = 0; i < kChunks; ++i) {
            chunks.push_back({kStoredBase + 4 * i * kStoredChunk, kStoredChunk});
            device.make(chunks.back().base, kStoredChunk);
        }
    }
    ~Stored() { std::filesystem::remove_all(folder); }
    ChunkMover::Outcome move_out() {
        const ChunkMover::Outcome outcome = mover.copy_out(chunks);
        for (const uint64_t base : mover.copied()) CHECK(mover.release(base) == CUDA_SUCCESS);
        return outcome;
    }
    ChunkMover::Outcome move_in() {
        const ChunkMover::Outcome outcome = mover.bring_in(mover.away());
        if (outcome.status != CUDA_SUCCESS) return outcome;
        for (const uint64_t base : mover.copied()) mover.forget_copy(base);
        CHECK(all_here());
        CHECK(*in_files == 0);
        return outcome;
    }
    bool all_here() const {
        return std::all_of(chunks.begin(), chunks.end(), [this](const auto& chunk) {
            const auto found = device.mapped.find(chunk.base);
            return found != device.mapped.end() &&
                   found->second == tests::ChunkDevice::contents(chunk.base, kStoredChunk);
        });
    }
    void wait_for_files(uint64_t bytes) const {
        await("not all is in files", [&] { return *in_files == bytes; }, [&] { return in_files->load(); });
    }

    tests::ChunkDevice device;
    std::string folder = std::filesystem::current_path() / "store-XXXXXX";
    std::set<std::string> notes;  // by the store's thread, which has ended or waits when they are read
    std::shared_ptr<SwapFile> file;
    std::shared_ptr<SpareBlocks> spare = std::make_shared<SpareBlocks>(device.driver());
    std::shared_ptr<BlockStore> store;
    StoredBlock::Bytes in_files = std::make_shared<std::atomic<uint64_t>>(0);
    std::vector<ChunkMover::Chunk> chunks;
    ChunkMover mover{device,
                     [this](uint64_t bytes, const StoredBlock::Settle& settle, BlockProblem* problem) {
                         return store->make(nullptr, in_files, bytes, settle, problem);
                     }};
};

}  // namespace

TEST_CASE("block store: without host memory all goes to the file, and comes back", "[block_store]") {
    Stored stored(0);
    for (int i = 0; i < 2; ++i) {
        REQUIRE(stored.move_out().status == CUDA_SUCCESS);
        CHECK(stored.device.held_bytes == 0);
        CHECK(stored.device.pinned <= 2);
        stored.wait_for_files(Stored::kAll);
        CHECK(stored.file->parts() == Stored::kAll / kStoredBlock);
        REQUIRE(stored.move_in().status == CUDA_SUCCESS);
        CHECK(reads == (i + 1) * static_cast<int>(Stored::kAll / kStoredBlock));  // each block once
        CHECK(stored.file->parts() == 0);
    }
    CHECK(stored.notes.empty());
}

TEST_CASE("block store: what has room stays in host memory", "[block_store]") {
    Stored stored(4 * kStoredBlock);
    REQUIRE(stored.move_out().status == CUDA_SUCCESS);
    stored.wait_for_files(Stored::kAll - 4 * kStoredBlock);
    CHECK(stored.device.pinned <= 6);
    SECTION("it comes back from both") { CHECK(stored.move_in().status == CUDA_SUCCESS); }
    SECTION("or chunk by chunk") {
        for (const auto& chunk : stored.chunks) {
            CHECK(stored.mover.bring_in({chunk.base}).status == CUDA_SUCCESS);
            stored.mover.forget_copy(chunk.base);
        }
        CHECK(stored.all_here());
        CHECK(*stored.in_files == 0);
    }
    SECTION("or is freed") {
        for (const auto& chunk : stored.chunks) CHECK_FALSE(stored.mover.drop(chunk.base));
        CHECK(*stored.in_files == 0);
    }
}

TEST_CASE("block store: a large host keeps everything", "[block_store]") {
    Stored stored(Stored::kAll + kStoredBlock);
    REQUIRE(stored.move_out().status == CUDA_SUCCESS);
    REQUIRE(stored.move_in().status == CUDA_SUCCESS);
    CHECK(reads == 0);
}

TEST_CASE("block store: a full disk undoes the move, and loses nothing", "[block_store]") {
    Stored stored(kStoredBlock);
    disk_is_full = true;
    const ChunkMover::Outcome outcome = stored.move_out();
    CHECK(outcome.status != CUDA_SUCCESS);
    CHECK(outcome.block.why.find("No space left on device") != std::string::npos);
    CHECK(stored.all_here());
    CHECK(stored.mover.bytes_away() == 0);
    disk_is_full = false;
    REQUIRE(stored.move_out().status == CUDA_SUCCESS);  // at once: a request is a reason to try again
    REQUIRE(stored.move_in().status == CUDA_SUCCESS);
}

TEST_CASE("block store: what is in host memory stays there while the disk is full", "[block_store]") {
    Stored stored(0);
    stored.chunks.resize(2);  // what moves may take beside
    disk_is_full = true;
    REQUIRE(stored.move_out().status == CUDA_SUCCESS);
    CHECK(stored.mover.bytes_away() == 2 * kStoredChunk);
    CHECK(stored.move_in().status == CUDA_SUCCESS);
    CHECK(*stored.in_files == 0);
}

TEST_CASE("block store: contents that cannot be read stay in the file, and come later", "[block_store]") {
    Stored stored(0);
    REQUIRE(stored.move_out().status == CUDA_SUCCESS);
    stored.wait_for_files(Stored::kAll);
    disk_fails = true;
    const ChunkMover::Outcome outcome = stored.move_in();
    CHECK(outcome.status == CUDA_ERROR_OPERATING_SYSTEM);
    CHECK(outcome.block.why.find("cannot be read: Input/output error") != std::string::npos);
    CHECK(stored.device.mapped.empty());
    CHECK(*stored.in_files == Stored::kAll);
    disk_fails = false;
    CHECK(stored.move_in().status == CUDA_SUCCESS);
}

TEST_CASE("block store: one comes in while another leaves", "[block_store]") {
    Stored stored(0);
    REQUIRE(stored.move_out().status == CUDA_SUCCESS);
    const auto in_files = std::make_shared<std::atomic<uint64_t>>(0);
    constexpr uint64_t kOther = kStoredBase + (1 << 30);
    std::vector<std::shared_ptr<StoredBlock>> others;
    // Blocks of another owner's, on a thread of its own, while chunks come in: both wait for the disk alone.
    auto other = std::async(std::launch::async, [&] {
        for (int i = 0; i < 64; ++i) {
            BlockProblem problem;
            auto block = stored.store->make(nullptr, in_files, kStoredBlock, [] {}, &problem);
            if (!block) return i;
            std::memset(block->at(0), static_cast<int>(kOther >> 20) + i, kStoredBlock);
            block->use(kStoredBlock);
            block->let_go();
            others.push_back(std::move(block));
        }
        return 64;
    });
    CHECK(stored.move_in().status == CUDA_SUCCESS);
    CHECK(other.get() == 64);
    for (int i = 0; i < 64; ++i) {
        BlockProblem problem;
        REQUIRE(others[i]->hold([] {}, &problem));
        CHECK(others[i]->at(kStoredBlock - 1)[0] == static_cast<char>(static_cast<int>(kOther >> 20) + i));
        others[i]->let_go();
    }
}

TEST_CASE("block store: without a file host memory is there or is not", "[block_store]") {
    Stored stored(4 * kStoredBlock, false);
    const ChunkMover::Outcome outcome = stored.move_out();
    CHECK(outcome.status != CUDA_SUCCESS);
    CHECK(outcome.block.missing == Stored::kAll - 4 * kStoredBlock);
    CHECK(stored.all_here());
    stored.chunks.resize(4);
    CHECK(stored.move_out().status == CUDA_SUCCESS);
    CHECK(stored.mover.bytes_away() == 4 * kStoredChunk);
    CHECK(stored.mover.pinned());
}

TEST_CASE("block store: an owner that goes while its block is written", "[block_store]") {
    for (int i = 0; i < 32; ++i) {
        Stored stored(0);
        REQUIRE(stored.move_out().status == CUDA_SUCCESS);
        for (const auto& chunk : stored.chunks) stored.mover.drop(chunk.base);
        CHECK(*stored.in_files == 0);
        await(
            "parts stay taken", [&] { return stored.file->parts() == 0; },
            [&] { return stored.file->parts(); });
    }
}

}  // namespace smt::runtime::server
