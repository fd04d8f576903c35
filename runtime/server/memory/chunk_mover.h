// Moves chunks of device memory to host memory, and back to the same addresses.
//
//   here --copy_out()--> copied --release()--> away --bring_in()--> copied --forget_copy()--> here
//
// A chunk that is copied is on the device and has a copy in host memory; one that is away has the copy alone.
// Each step either succeeds or leaves everything as it was, so contents are never lost: the device's memory
// goes after the whole copy has succeeded, and the copy stays until the caller has all that it wants back. To
// give up halfway is to take a step back: forget_copy() after copy_out(), release() after bring_in().
//
// The caller keeps the addresses reserved all the time. While a chunk moves or is away, nothing else uses
// what is there: no work of the GPU, no other thread's copy.
//
// Host memory is blocks, whose contents may be in a file meanwhile (stored_block.h): a chunk may lie in
// several, and small chunks of one copy_out() share one, which goes with the last of their copies. The next
// block is made while what has its place is copied. Chunks come back in the order of their blocks, so that
// each is read once.
//
// Not thread-safe, but for bytes_away(). Each step may be one chunk or several.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/server/memory/stored_block.h"

namespace smt::runtime::server {

class ChunkMover {
public:
    // Where copies go; as BlockStore::make(): the block may be smaller, and is asked for again for the rest.
    using MakeBlock = std::function<std::shared_ptr<StoredBlock>(
        uint64_t bytes, const StoredBlock::Settle& settle, BlockProblem* problem)>;
    ChunkMover(device::Device& device, MakeBlock make_block);
    ChunkMover(const ChunkMover&) = delete;
    ChunkMover& operator=(const ChunkMover&) = delete;

    struct Chunk {
        uint64_t base = 0;   // a mapping begins there
        uint64_t bytes = 0;  // of that mapping
        uint64_t kept = 0;   // the keeper's id (device/physical_memory.h); 0: the driver's memory
    };
    struct Outcome {
        CUresult status = CUDA_SUCCESS;
        const char* failed = nullptr;  // for people: the function of the driver, or "host memory"
        BlockProblem block = {};       // where that is what failed
        // Of the time that it took. The first part overlaps with the second one.
        std::chrono::nanoseconds making_host_memory{}, copying{}, mapping{};
    };
    Outcome copy_out(const std::vector<Chunk>& chunks);
    // SUCCESS: the chunk is away. Else it is here, and its copy is forgotten.
    CUresult release(uint64_t base);
    Outcome bring_in(std::vector<uint64_t> bases);
    void forget_copy(uint64_t base);
    // The chunk is freed: its copy is forgotten. True: the caller unmaps its memory; false: there is none.
    bool drop(uint64_t base);

    std::vector<uint64_t> copied() const;
    std::vector<uint64_t> away() const;   // in the order of their blocks
    uint64_t kept(uint64_t base) const;   // of a copied chunk: bring_in() gives it another id
    uint64_t bytes(uint64_t base) const;  // of a copied chunk, or one that is away
    uint64_t bytes_away() const { return bytes_away_.load(std::memory_order_relaxed); }
    bool pinned() const;  // no copy is in pageable memory

private:
    enum class State { kCopied, kAway, kEmpty };  // kEmpty: mapped, but the contents are in the copy only
    struct Piece {
        std::shared_ptr<StoredBlock> block;
        uint64_t offset = 0;
        uint64_t bytes = 0;
    };
    struct Place {
        uint64_t bytes = 0;
        uint64_t kept = 0;
        std::vector<Piece> pieces = {};  // one after the other, all of it
        State state = State::kCopied;
    };
    using Places = std::map<uint64_t, Place>;
    // A stream, and the blocks that copies on it use; they are held.
    struct Copying {
        const DriverApi& driver;
        CUstream stream = nullptr;
        std::vector<std::shared_ptr<StoredBlock>> blocks = {};
        CUresult settle();  // the copies are over, and the blocks let go
    };
    using Copies = std::function<CUresult(Copying& copying)>;

    // Finds places for copies: what is left of the last block comes first.
    struct Filling {
        std::shared_ptr<StoredBlock> block;
        uint64_t used = 0;               // of the block
        uint64_t left = 0;               // bytes without a place
        CUresult status = CUDA_SUCCESS;  // of copies that had to end first
    };
    bool next_piece(Filling& filling, uint64_t bytes, Copying& copying, Piece* piece, Outcome* outcome);
    CUresult fill(uint64_t base, Place& place);  // maps memory there
    CUresult copy_in(uint64_t base, const Place& place, Copying& copying, Outcome* outcome);
    void in_order(std::vector<uint64_t>& bases) const;
    CUresult unmap(uint64_t base, Place& place);
    CUresult with_stream(const Copies& copies);
    std::vector<uint64_t> in(State state) const;

    device::Device& device_;
    const DriverApi& driver_;
    const MakeBlock make_block_;
    Places places_;
    std::atomic<uint64_t> bytes_away_{0};
};

}  // namespace smt::runtime::server
