// Where contents of device memory are that are away, of all sessions: in host memory, and where that does not
// suffice, in a file (swap_file.h).
//
//   make() -> a block in host memory; at rest -> the thread writes it, where more than `most` is used
//   hold() -> in host memory again, while its contents stay in the file, too
//
// So moves find host memory as long as the disk keeps up. Beyond `most` two blocks serve for moves under way:
// one that needs more waits, and the block at rest goes that is in the file already, or else the one that has
// been at rest for the longest time. A move that waits holds no block (StoredBlock::Settle), so it waits for
// the disk alone. If the disk fails, the move is told, and what is in memory stays there; the thread tries
// again when there is a new request, or after a while. All blocks have one size then, as each may get the
// contents of any other.
//
// Without a file nothing but make() is left of this: there is host memory, or there is none.
//
// Any thread. Blocks keep the store alive.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/server/memory/spare_blocks.h"
#include "runtime/server/memory/stored_block.h"
#include "runtime/server/memory/swap_file.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class BlockStore : public std::enable_shared_from_this<BlockStore> {
public:
    using Note = std::function<void(const std::string& line)>;

    // `most`: bytes of host memory. `file`: null if there is none; its parts have `block_bytes`.
    BlockStore(std::shared_ptr<SpareBlocks> blocks, std::shared_ptr<SwapFile> file, uint64_t most, Note note,
               uint64_t block_bytes = HostBlock::kLargest);
    ~BlockStore();
    BlockStore(const BlockStore&) = delete;
    BlockStore& operator=(const BlockStore&) = delete;

    // For so many bytes, of which it has HostBlock::kLargest at most; held. Without a file it counts in
    // `account`, unless that is null. Null: *problem says why.
    std::shared_ptr<StoredBlock> make(const MemoryAccountPointer& account, const StoredBlock::Bytes& in_files,
                                      uint64_t bytes, const StoredBlock::Settle& settle,
                                      BlockProblem* problem);

private:
    friend class StoredBlock;
    using Clock = std::chrono::steady_clock;
    using Entry = StoredBlock::Entry;
    using EntryPointer = std::shared_ptr<Entry>;
    using Lock = std::unique_lock<std::mutex>;

    // For blocks.
    void enter(const EntryPointer& entry);
    void leave(const EntryPointer& entry);
    bool hold(const EntryPointer& entry, const StoredBlock::Settle& settle, BlockProblem* problem);
    void let_go(const EntryPointer& entry);
    bool pinned(const EntryPointer& entry) const;

    std::shared_ptr<HostBlock> find_memory(const StoredBlock::Settle& settle, BlockProblem* problem);
    bool drop_written();
    bool await_memory(uint64_t given, BlockProblem* problem);
    bool any_in_memory() const;
    EntryPointer coldest(bool written) const;
    void give_memory(Entry& entry);
    void note_given();
    EntryPointer to_give() const;
    void run();
    void write(Lock& lock, const EntryPointer& entry);

    const std::shared_ptr<SpareBlocks> blocks_;
    const std::shared_ptr<SwapFile> file_;
    const uint64_t most_, block_bytes_;
    const Note note_;
    mutable std::mutex mutex_;  // guards what follows, and entries; SpareBlocks' is taken within it
    std::condition_variable changed_;
    std::list<EntryPointer> entries_;
    uint64_t in_memory_ = 0;  // bytes of entries
    uint64_t rests_ = 0;
    uint64_t given_ = 0;     // times that memory was given back
    uint64_t requests_ = 0;  // of moves that wait for memory, so far
    uint64_t failures_ = 0;  // of the disk, so far
    uint64_t asked_ = 0;     // requests_ at the last of them
    Clock::time_point retry_{};
    std::string problem_;  // of the last failure
    bool wanted_ = false;  // a move waits, and nothing was given back since
    bool writes_ = false, leaves_ = false;
    Thread thread_;
};

}  // namespace smt::runtime::server
