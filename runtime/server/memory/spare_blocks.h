// Host memory for chunks that leave the device: blocks that are free again are kept for the next ones, of
// whichever program, because to pin pages takes longer than to copy them, and to unpin them holds up the
// whole context. What has not been used for a while is freed in the background (unpinning.h).
//
// What a program has in a block counts as its host memory (host_memory in SMT_LIMITS); the rest of it, and
// spare blocks, are the server's.
//
// Any thread. Blocks may outlive this object.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/server/memory/host_block.h"
#include "runtime/server/memory/memory_account.h"

namespace smt::runtime::server {

class SpareBlocks : public std::enable_shared_from_this<SpareBlocks> {
public:
    using Clock = std::chrono::steady_clock;
    using BlockPointer = std::shared_ptr<HostBlock>;

    explicit SpareBlocks(const DriverApi& driver) : driver_(driver) {}

    // Lent and spare blocks together take `most` bytes at most. `each`: bytes of each block from now on,
    // however many are asked for; 0: as many as are.
    void bound(uint64_t most, uint64_t each);

    // As HostBlock::make(): the smallest spare block that is large enough, else the largest one, or a new one
    // where none is spare. Without an account it is no program's.
    BlockPointer take(uint64_t bytes, const MemoryAccountPointer& account, uint64_t* missing);
    // One block more is spare, if fewer bytes than that are. False: there is no host memory.
    bool prepare(uint64_t bytes);
    // A spare block, for the caller to free, if none was used for so long; else null.
    BlockPointer take_unused(Clock::duration longest);
    void use() { note_use(Clock::now()); }  // programs that take turns need them again
    uint64_t spare_bytes() const;

private:
    BlockPointer lend(const BlockPointer& block, Charge charge);
    void take_back(const BlockPointer& block);
    BlockPointer take_spare(uint64_t bytes);
    BlockPointer make(uint64_t bytes, uint64_t* missing);
    void note_use(Clock::time_point now);

    const DriverApi& driver_;
    mutable std::mutex mutex_;
    std::vector<BlockPointer> spare_;
    uint64_t lent_ = 0;  // bytes
    uint64_t most_ = ~uint64_t{0}, each_ = 0;
    Clock::time_point used_{};
};

}  // namespace smt::runtime::server
