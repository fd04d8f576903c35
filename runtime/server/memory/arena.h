// The server's end of a session arena (runtime/protocol/layout.h): the memfd, its mapping, and the
// allocator of its parts.
//
// Allocation is first fit over whole pages. A freed block returns its pages to the system. Any thread
// may call any function after map() has succeeded. Nothing here trusts what the client wrote.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/protocol/layout.h"
#include "runtime/protocol/record.h"
#include "runtime/protocol/state.h"
#include "runtime/server/memory/memory_account.h"

namespace smt::runtime::server {

class Fence;

class Arena {
public:
    // The application's allocations count against `account`.
    Arena(const DriverApi& driver, MemoryAccountPointer account)
        : driver_(driver), account_(std::move(account)) {}
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    bool create(std::string& error);  // the memfd, with its seals
    bool map(uint64_t base);          // false: not free there. Moves an arena without allocations
    bool pinned() const;              // a part is registered with the driver; no concurrent calls
    CUresult register_words();        // after the client accepted the base
    // Unregisters everything, which may block. No GPU work uses the arena any more; no concurrent calls.
    void unmap();

    // Takeover. save(): the session's threads stand still. restore(), in place of create(): takes the file
    // over, maps it at `base`, and registers what was registered.
    bool shows_other_pages() const;  // which save() cannot describe
    bool all_released();             // nothing waits to be unregistered
    void save(protocol::StateWriter& out);
    CUresult restore(protocol::Reader& in, int file, uint64_t base);

    int file() const { return file_; }
    uint64_t base() const { return base_; }
    protocol::SessionHeader& header() const { return *reinterpret_cast<protocol::SessionHeader*>(base_); }

    // Memory for the application is in whole granules, open to the session's kernels as long as it
    // is pinned. Before register_words().
    void use_fence(Fence* fence) { fence_ = fence; }

    // A zeroed part of the arena. `pinned`: registered with the driver (PORTABLE | DEVICEMAP), so the
    // device uses the same address. free() takes exactly an address that allocate() returned.
    CUresult allocate(uint64_t bytes, bool pinned, uint64_t* address);
    CUresult free(uint64_t address);

    // The same for memory that the application requests and may pass in calls. It counts as host memory
    // and is the only memory that contains() accepts.
    CUresult allocate_host(uint64_t bytes, bool pinned, uint64_t* address);
    CUresult free_host(uint64_t address);
    // Pinned host memory that aliases pages of other host memory (protocol::HostPieces): both addresses
    // map the same pages.
    CUresult allocate_showing(uint64_t bytes, const protocol::HostPiece* pieces, uint32_t count,
                              uint64_t* address);
    bool contains(uint64_t address, uint64_t bytes) const;  // inside one live host allocation
    void free_all_host();                                   // context reset

    // Completion words. word(i) is valid for every i below kEventWords + kServerWords.
    std::atomic<uint64_t>& word(uint32_t index) const {
        return reinterpret_cast<std::atomic<uint64_t>*>(base_ + protocol::kWordsOffset)[index];
    }
    CUdeviceptr word_address(uint32_t index) const { return base_ + protocol::kWordsOffset + 8ull * index; }

    // A staging block of a lane: kStagingSlots pinned slots and as many words, initially 0.
    struct Staging {
        uint64_t address = 0;
        uint32_t first_word = 0;
        uint32_t reserved = 0;
        uint64_t done_values[protocol::kStagingSlots] = {};  // what the last uses of the slots write
    };
    CUresult open_staging(Staging* staging);
    void close_staging(const Staging& staging);  // another lane gets it once the GPU's work with it is over

    // One word of the server's share. Its value only grows, across all its owners: `value` is the last
    // value issued on it, and the next owner continues from there. give_word() takes the last value that
    // the word will reach.
    struct Word {
        uint32_t index = 0;  // 0: none
        uint64_t value = 0;
    };
    Word take_word();
    void give_word(const Word& word);
    // At the end of the session: releases every stream that waits for one of the server's words.
    void release_words();

private:
    struct Block {
        uint64_t bytes = 0;
        bool pinned = false;
        bool host = false;
        bool showing = false;  // maps pages of other blocks
        Charge charge;         // host memory
    };
    struct Pieces {
        const protocol::HostPiece* list;
        uint32_t count;
    };
    bool acceptable(uint64_t bytes, const Pieces& pieces) const;
    bool show(uint64_t offset, const Pieces& pieces);
    bool show_own(uint64_t offset, uint64_t bytes);
    CUresult allocate_block(uint64_t bytes, bool pinned, bool host, const Pieces& pieces, uint64_t* address);
    CUresult free_block(uint64_t address, bool host);
    CUresult release(uint64_t offset, const Block& block);  // NOT_READY: unregistering would block
    void release_dying();
    CUresult pin(uint64_t offset, uint64_t bytes);
    void give_pages(uint64_t offset, uint64_t bytes);
    bool take_hole(uint64_t bytes, uint64_t step, uint64_t* offset);  // caller holds mutex_
    uint32_t take_words(uint32_t count);
    bool is_over(const Staging& staging) const;  // the GPU is done with it
    // With a fence kernels write an error into the header.
    uint64_t words_from() const { return fence_ ? 0 : protocol::kWordsOffset; }

    const DriverApi& driver_;
    const MemoryAccountPointer account_;
    Fence* fence_ = nullptr;  // null: the session has none
    int file_ = -1;
    uint64_t base_ = 0;
    bool words_registered_ = false;

    mutable std::mutex mutex_;
    std::map<uint64_t, uint64_t> free_;  // offset -> bytes
    std::map<uint64_t, Block> blocks_;   // offset -> block
    std::map<uint64_t, Block> dying_;    // freed, not yet unregistered
    std::vector<Staging> idle_staging_;
    std::vector<Word> idle_words_;
    uint32_t next_word_ = protocol::kEventWords;
};

}  // namespace smt::runtime::server
