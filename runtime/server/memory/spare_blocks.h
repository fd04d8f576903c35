// Host memory for the chunks of a program that leaves the device and comes back again and again: a block that
// is free again is kept for the next time, because to pin pages takes longer than to copy them.
//
// Blocks count as host memory of the program (host_memory in SMT_LIMITS), also while they are spare.
//
// Any thread. Blocks may outlive this object.
#pragma once

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
    SpareBlocks(const DriverApi& driver, MemoryAccountPointer account)
        : driver_(driver), account_(std::move(account)) {}

    // As HostBlock::make(): a spare block that is large enough, or a new one.
    std::shared_ptr<HostBlock> take(uint64_t bytes, uint64_t* missing);
    // Frees those that are spare. It may wait for the device.
    void drop();
    uint64_t spare_bytes() const;

private:
    struct Block {
        std::shared_ptr<HostBlock> block;
        Charge charge;
    };
    using BlockPointer = std::shared_ptr<Block>;
    std::shared_ptr<HostBlock> lend(const BlockPointer& block);
    void take_back(const BlockPointer& block);

    const DriverApi& driver_;
    const MemoryAccountPointer account_;
    mutable std::mutex mutex_;
    std::vector<BlockPointer> spare_;
};

}  // namespace smt::runtime::server
