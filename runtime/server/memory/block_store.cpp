// See block_store.h.
#include "runtime/server/memory/block_store.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::server {

namespace {

constexpr auto kRetryDisk = std::chrono::seconds(10);  // after a failure of the disk, if no move asks
constexpr uint64_t kPageOfDisk = 4096;
constexpr uint64_t kUnbounded = ~uint64_t{0};

uint64_t whole_pages(uint64_t bytes) { return (bytes + kPageOfDisk - 1) / kPageOfDisk * kPageOfDisk; }

uint64_t number_of_block() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}

}  // namespace

StoredBlock::StoredBlock(std::shared_ptr<HostBlock> memory, std::shared_ptr<BlockStore> store, Bytes in_files)
    : store_(std::move(store)),
      entry_(std::make_shared<Entry>(Entry{memory->bytes(), std::move(in_files), memory})),
      number_(number_of_block()) {
    if (store_) store_->enter(entry_);
}

StoredBlock::~StoredBlock() {
    if (store_) store_->leave(entry_);
}

bool StoredBlock::pinned() const { return store_ ? store_->pinned(entry_) : entry_->memory->pinned(); }

void StoredBlock::use(uint64_t bytes) { entry_->used = std::max(entry_->used, bytes); }

bool StoredBlock::hold(const Settle& settle, BlockProblem* problem) {
    return !store_ || store_->hold(entry_, settle, problem);
}

void StoredBlock::let_go() {
    if (store_) store_->let_go(entry_);
}

BlockStore::BlockStore(std::shared_ptr<SpareBlocks> blocks, std::shared_ptr<SwapFile> file, uint64_t most,
                       Note note, uint64_t block_bytes)
    : blocks_(std::move(blocks)),
      file_(std::move(file)),
      most_(most),
      block_bytes_(block_bytes),
      note_(std::move(note)) {
    if (!file_) {
        blocks_->bound(most_, 0);
        return;
    }
    const uint64_t for_moves = 2 * block_bytes_;
    blocks_->bound(std::min(most_, kUnbounded - for_moves) + for_moves, block_bytes_);
    const std::string why = thread_.serve({"swap file", ""}, [this] { run(); });
    if (!why.empty()) note_("memory of tenants does not go to files: " + why);
}

BlockStore::~BlockStore() {
    {
        std::lock_guard lock(mutex_);
        leaves_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

std::shared_ptr<StoredBlock> BlockStore::make(const MemoryAccountPointer& account,
                                              const StoredBlock::Bytes& in_files, uint64_t bytes,
                                              const StoredBlock::Settle& settle, BlockProblem* problem) {
    std::shared_ptr<HostBlock> memory =
        file_ ? find_memory(settle, problem) : blocks_->take(bytes, account, &problem->missing);
    if (!memory) return nullptr;
    return std::make_shared<StoredBlock>(std::move(memory), file_ ? shared_from_this() : nullptr, in_files);
}

// Of block_bytes_.
std::shared_ptr<HostBlock> BlockStore::find_memory(const StoredBlock::Settle& settle, BlockProblem* problem) {
    for (bool settled = false;;) {
        uint64_t given = 0;
        {
            std::lock_guard lock(mutex_);
            given = given_;
        }
        if (auto memory = blocks_->take(block_bytes_, nullptr, &problem->missing)) return memory;
        if (drop_written()) continue;
        if (!std::exchange(settled, true))
            settle();
        else if (!await_memory(given, problem))
            return nullptr;
    }
}

// At rest, in memory, and in the file or not: the one that has been so for the longest time. Null: there is
// none. The caller holds mutex_.
BlockStore::EntryPointer BlockStore::coldest(bool written) const {
    EntryPointer found;
    for (const EntryPointer& each : entries_) {
        if (!each->memory || each->holds != 0 || static_cast<bool>(each->part) != written) continue;
        if (!found || each->rested < found->rested) found = each;
    }
    return found;
}

// The caller holds mutex_. The block is in the file.
void BlockStore::give_memory(Entry& entry) {
    entry.memory = nullptr;
    in_memory_ -= entry.bytes;
    if (entry.in_files) entry.in_files->fetch_add(entry.used, std::memory_order_relaxed);
    note_given();
}

// Likewise.
void BlockStore::note_given() {
    ++given_;
    wanted_ = false;
    changed_.notify_all();
}

// True: there is memory again.
bool BlockStore::drop_written() {
    std::lock_guard lock(mutex_);
    const EntryPointer entry = coldest(true);
    if (entry) give_memory(*entry);
    return entry != nullptr;
}

bool BlockStore::any_in_memory() const {
    return writes_ || std::any_of(entries_.begin(), entries_.end(),
                                  [](const EntryPointer& each) { return each->memory != nullptr; });
}

// Until memory was given back since `given`. False: it will not be.
bool BlockStore::await_memory(uint64_t given, BlockProblem* problem) {
    Lock lock(mutex_);
    if (given_ != given) return true;  // already: no further block has to go
    const uint64_t failures = failures_;
    wanted_ = true;
    ++requests_;
    changed_.notify_all();
    changed_.wait(lock, [&] {
        return leaves_ || given_ != given || failures_ != failures || !any_in_memory() || !thread_.joinable();
    });
    if (given_ != given) return true;
    if (failures_ != failures) problem->why = problem_;
    return false;
}

void BlockStore::enter(const EntryPointer& entry) {
    std::lock_guard lock(mutex_);
    in_memory_ += entry->bytes;
    entries_.push_back(entry);
}

// What the thread writes just now is given back when it has.
void BlockStore::leave(const EntryPointer& entry) {
    std::lock_guard lock(mutex_);
    entries_.remove(entry);
    entry->left = true;
    if (entry->memory)
        in_memory_ -= entry->bytes;
    else if (entry->in_files)
        entry->in_files->fetch_sub(entry->used, std::memory_order_relaxed);
    if (!entry->writes) entry->memory = nullptr;
    note_given();
}

bool BlockStore::hold(const EntryPointer& entry, const StoredBlock::Settle& settle, BlockProblem* problem) {
    {
        std::lock_guard lock(mutex_);
        ++entry->holds;
        if (entry->memory) return true;
    }
    std::shared_ptr<HostBlock> memory = find_memory(settle, problem);
    const bool found = memory != nullptr;
    if (found) problem->why = file_->read(entry->part, memory->at(0), whole_pages(entry->used));
    std::lock_guard lock(mutex_);
    if (found && problem->why.empty()) {
        entry->memory = std::move(memory);
        in_memory_ += entry->bytes;
        if (entry->in_files) entry->in_files->fetch_sub(entry->used, std::memory_order_relaxed);
        return true;
    }
    --entry->holds;
    memory = nullptr;
    note_given();
    return false;
}

void BlockStore::let_go(const EntryPointer& entry) {
    std::lock_guard lock(mutex_);
    if (--entry->holds == 0) entry->rested = ++rests_;
    changed_.notify_all();
}

bool BlockStore::pinned(const EntryPointer& entry) const {
    std::lock_guard lock(mutex_);
    return !entry->memory || entry->memory->pinned();
}

// Null: nothing has to leave memory, or can. The caller holds mutex_.
BlockStore::EntryPointer BlockStore::to_give() const {
    if (in_memory_ <= most_ && !wanted_) return nullptr;
    if (EntryPointer written = coldest(true)) return written;
    return asked_ == requests_ && Clock::now() < retry_ ? nullptr : coldest(false);
}

void BlockStore::run() {
    Lock lock(mutex_);
    while (!leaves_) {
        const EntryPointer entry = to_give();
        if (!entry)
            changed_.wait_for(lock, kRetryDisk);
        else if (entry->part)
            give_memory(*entry);
        else
            write(lock, entry);
    }
}

// The owner may hold the block meanwhile, for copies from it, or be gone.
void BlockStore::write(Lock& lock, const EntryPointer& entry) {
    entry->writes = writes_ = true;
    lock.unlock();
    std::string problem;
    SwapFile::Part part = file_->write(entry->memory->at(0), whole_pages(entry->used), &problem);
    if (!problem.empty()) note_("memory of tenants stays in host memory: " + problem);
    lock.lock();
    entry->writes = writes_ = false;
    entry->part = std::move(part);
    if (!problem.empty()) {
        ++failures_;
        asked_ = requests_;
        retry_ = Clock::now() + kRetryDisk;
        problem_ = problem;
        wanted_ = false;
    }
    if (!entry->left) return changed_.notify_all();
    entry->memory = nullptr;
    note_given();
}

}  // namespace smt::runtime::server
