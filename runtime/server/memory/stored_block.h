// A block of contents that are away from the device: in host memory, in a file, or in both (block_store.h).
//
//   made --let_go()--> at rest: its contents do not change any more, and may go to the file meanwhile
//        <--hold()---- in memory, for copies to the device
//
// Its owner calls one function at a time. It may be destroyed in each state.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/server/memory/host_block.h"
#include "runtime/server/memory/swap_file.h"

namespace smt::runtime::server {

class BlockStore;

// Why there is no block, or no contents: bytes of host memory that are missing, or words for people.
struct BlockProblem {
    uint64_t missing = 0;
    std::string why = {};
};

class StoredBlock {
public:
    // Ends the copies of the caller's, and lets the blocks go that they use. Called where memory is short.
    using Settle = std::function<void()>;
    using Bytes = std::shared_ptr<std::atomic<uint64_t>>;  // that one owner has in files alone

    // What a store knows of it. Its mutex guards what is not const.
    struct Entry {
        const uint64_t bytes;  // that it has room for
        const Bytes in_files;
        std::shared_ptr<HostBlock> memory;  // null: its contents are in the file alone
        SwapFile::Part part = {};           // empty: they are in memory alone
        uint64_t used = 0;
        uint64_t rested = 0;  // the store's count of let_go() then
        int holds = 1;
        bool writes = false;  // the store's thread reads its memory
        bool left = false;    // its owner is gone
    };

    // It is held. `store`: null for one that stays in memory.
    StoredBlock(std::shared_ptr<HostBlock> memory, std::shared_ptr<BlockStore> store, Bytes in_files);
    ~StoredBlock();
    StoredBlock(const StoredBlock&) = delete;
    StoredBlock& operator=(const StoredBlock&) = delete;

    uint64_t bytes() const { return entry_->bytes; }
    uint64_t number() const { return number_; }  // later ones have larger numbers
    bool pinned() const;                         // its contents are in no pageable memory
    // While it is held.
    char* at(uint64_t offset) const { return entry_->memory->at(offset); }
    void use(uint64_t bytes);  // before it is let go for the first time: the first ones have contents

    // False: its contents are where they were, as *problem says. Each hold() that succeeds has a let_go().
    bool hold(const Settle& settle, BlockProblem* problem);
    void let_go();

private:
    const std::shared_ptr<BlockStore> store_;
    const std::shared_ptr<Entry> entry_;
    const uint64_t number_;
};

}  // namespace smt::runtime::server
