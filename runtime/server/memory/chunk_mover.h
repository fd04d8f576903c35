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
// Not thread-safe, but for bytes_away(). Each step may be one chunk or several; those of one copy_out() share
// a block of host memory, which goes with the last of their copies.
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
#include "runtime/server/memory/host_block.h"

namespace smt::runtime::server {

class ChunkMover {
public:
    // Where copies go; as HostBlock::make().
    using MakeBlock = std::function<std::shared_ptr<HostBlock>(uint64_t bytes, uint64_t* missing)>;
    explicit ChunkMover(device::Device& device, MakeBlock make_block = {});
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
        uint64_t missing = 0;          // bytes of host memory, where that is what failed
        std::chrono::nanoseconds making_host_memory{};  // of the time that it took
    };
    Outcome copy_out(const std::vector<Chunk>& chunks);
    // SUCCESS: the chunk is away. Else it is here, and its copy is forgotten.
    CUresult release(uint64_t base);
    Outcome bring_in(const std::vector<uint64_t>& bases);
    void forget_copy(uint64_t base);
    // The chunk is freed: its copy is forgotten. True: the caller unmaps its memory; false: there is none.
    bool drop(uint64_t base);

    std::vector<uint64_t> copied() const;
    std::vector<uint64_t> away() const;
    uint64_t kept(uint64_t base) const;  // of a copied chunk: bring_in() gives it another id
    uint64_t bytes_away() const { return bytes_away_.load(std::memory_order_relaxed); }
    bool pinned() const;  // all copies are in pinned memory

private:
    enum class State { kCopied, kAway, kEmpty };  // kEmpty: mapped, but the contents are in the copy only
    struct Place {
        uint64_t bytes = 0;
        uint64_t kept = 0;
        std::shared_ptr<HostBlock> block;
        uint64_t offset = 0;
        State state = State::kCopied;
    };
    using Places = std::map<uint64_t, Place>;
    using Copies = std::function<CUresult(CUstream stream)>;

    CUresult fill(uint64_t base, Place& place);  // maps memory there
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
