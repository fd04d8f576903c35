#include "runtime/server/memory/arena.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/server/memory/fence.h"

namespace smt::runtime::server {

namespace {

constexpr uint64_t kPage = 4096;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
constexpr uint64_t kStagingBytes = protocol::kStagingSlots * protocol::kStagingSlotBytes;
constexpr auto kUnregisterPoll = std::chrono::milliseconds(1);
constexpr uint32_t kWords = protocol::kEventWords + protocol::kServerWords;

}  // namespace

Arena::~Arena() {
    unmap();
    if (file_ >= 0) close(file_);
}

bool Arena::create(std::string& error) {
    file_ = memfd_create("smt-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    // The seals prevent a client from making the server fault by shrinking the file.
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(protocol::kArenaBytes)) != 0 ||
        fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        error = std::string("no memory file for the session: ") + std::strerror(errno);
        return false;
    }
    free_[protocol::kArenaHeapOffset] = protocol::kArenaBytes - protocol::kArenaHeapOffset;
    return true;
}

bool Arena::map(uint64_t base) {
    unmap();
    void* wanted = reinterpret_cast<void*>(base);
    void* got = mmap(wanted, protocol::kArenaBytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file_, 0);
    if (got == MAP_FAILED) return false;
    if (got != wanted) {  // a kernel without MAP_FIXED_NOREPLACE takes the address as a hint
        munmap(got, protocol::kArenaBytes);
        return false;
    }
    madvise(got, protocol::kArenaBytes, MADV_DONTDUMP);
    base_ = base;
    return true;
}

void Arena::unmap() {
    if (!base_) return;
    auto unregister = [this](uint64_t offset) {
        while (driver_.cuMemHostUnregister(reinterpret_cast<void*>(base_ + offset)) == CUDA_ERROR_NOT_READY)
            std::this_thread::sleep_for(kUnregisterPoll);
    };
    blocks_.merge(dying_);
    for (const auto& [offset, block] : blocks_) {
        if (block.pinned) unregister(offset);
    }
    blocks_.clear();
    if (words_registered_) unregister(words_from());
    words_registered_ = false;
    munmap(reinterpret_cast<void*>(base_), protocol::kArenaBytes);
    base_ = 0;
}

bool Arena::pinned() const {
    const auto is_pinned = [](const auto& each) { return each.second.pinned; };
    return words_registered_ || std::any_of(blocks_.begin(), blocks_.end(), is_pinned) ||
           std::any_of(dying_.begin(), dying_.end(), is_pinned);
}

CUresult Arena::pin(uint64_t offset, uint64_t bytes) {
    return driver_.cuMemHostRegister_v2(reinterpret_cast<void*>(base_ + offset), bytes, kRegisterFlags);
}

CUresult Arena::register_words() {
    const CUresult status = pin(words_from(), protocol::kWordsOffset + protocol::kWordsBytes - words_from());
    words_registered_ = status == CUDA_SUCCESS;
    return status;
}

CUresult Arena::allocate(uint64_t bytes, bool pinned, uint64_t* address) {
    return allocate_block(bytes, pinned, false, {}, address);
}
CUresult Arena::allocate_host(uint64_t bytes, bool pinned, uint64_t* address) {
    return allocate_block(bytes, pinned, true, {}, address);
}
CUresult Arena::allocate_showing(uint64_t bytes, const protocol::HostPiece* pieces, uint32_t count,
                                 uint64_t* address) {
    if (!acceptable(bytes, {pieces, count})) return CUDA_ERROR_INVALID_VALUE;
    return allocate_block(bytes, true, true, {pieces, count}, address);
}
CUresult Arena::free(uint64_t address) { return free_block(address, false); }
CUresult Arena::free_host(uint64_t address) { return free_block(address, true); }

// Checks page by page, because one piece of a client may cover two neighbouring allocations.
bool Arena::acceptable(uint64_t bytes, const Pieces& pieces) const {
    uint64_t sum = 0;
    if (bytes > protocol::kArenaBytes) return false;
    for (uint32_t i = 0; i < pieces.count; ++i) {
        const protocol::HostPiece& piece = pieces.list[i];
        if (piece.bytes == 0 || piece.bytes % kPage != 0 || piece.shown % kPage != 0 ||
            piece.bytes > bytes - sum)
            return false;
        for (uint64_t at = 0; piece.shown && at < piece.bytes; at += kPage) {
            if (!contains(piece.shown + at, kPage)) return false;
        }
        sum += piece.bytes;
    }
    return sum == bytes;
}

bool Arena::show(uint64_t offset, const Pieces& pieces) {
    for (uint32_t i = 0; i < pieces.count; offset += pieces.list[i++].bytes) {
        const protocol::HostPiece& piece = pieces.list[i];
        if (!piece.shown) continue;
        void* at = reinterpret_cast<void*>(base_ + offset);
        if (mmap(at, piece.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_,
                 static_cast<off_t>(piece.shown - base_)) == MAP_FAILED)
            return false;
    }
    return true;
}

// Maps the block's addresses to its own part of the file again. False: they show other memory, and must not
// be given to another block.
bool Arena::show_own(uint64_t offset, uint64_t bytes) {
    void* at = reinterpret_cast<void*>(base_ + offset);
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_,
             static_cast<off_t>(offset)) == MAP_FAILED)
        return false;
    madvise(at, bytes, MADV_DONTDUMP);
    return true;
}

CUresult Arena::allocate_block(uint64_t bytes, bool pinned, bool host, const Pieces& pieces,
                               uint64_t* address) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > protocol::kArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
    release_dying();
    const bool fenced = fence_ && host && pinned;
    const uint64_t step = fenced ? kFenceGranule : kPage;
    uint64_t whole = (bytes + step - 1) & ~(step - 1);
    uint64_t offset = 0;
    Charge charge;
    if (host && !charge.take(account_, whole)) return CUDA_ERROR_OUT_OF_MEMORY;
    {
        std::lock_guard lock(mutex_);
        if (!take_hole(whole, step, &offset)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    // The lock is not held while the driver pins pages, which takes milliseconds for a large block. The block
    // is in no list until it is entered below.
    bool showing = pieces.count != 0;
    CUresult status = showing && !show(offset, pieces) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    if (pinned && status == CUDA_SUCCESS) status = pin(offset, whole);
    if (fenced && status == CUDA_SUCCESS) {
        status = fence_->open_to(base_ + offset, whole);
        if (status != CUDA_SUCCESS) {
            fence_->close_to(base_ + offset, whole);
            driver_.cuMemHostUnregister(reinterpret_cast<void*>(base_ + offset));
        }
    }
    if (status != CUDA_SUCCESS) {
        if (!showing || show_own(offset, whole)) give_pages(offset, whole);
        return status;
    }
    std::lock_guard lock(mutex_);
    blocks_[offset] = {whole, pinned, host, showing, std::move(charge)};
    *address = base_ + offset;
    return CUDA_SUCCESS;
}

// Of offsets that are multiples of `step`, the first one with room.
bool Arena::take_hole(uint64_t bytes, uint64_t step, uint64_t* offset) {
    for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
        const auto [begin, room] = *hole;
        const uint64_t at = (begin + step - 1) & ~(step - 1), skipped = at - begin;
        if (room < skipped || room - skipped < bytes) continue;
        free_.erase(hole);
        if (skipped) free_[begin] = skipped;
        if (room - skipped > bytes) free_[at + bytes] = room - skipped - bytes;
        *offset = at;
        return true;
    }
    return false;
}

CUresult Arena::free_block(uint64_t address, bool host) {
    Block block;
    uint64_t offset = address - base_;
    {
        std::lock_guard lock(mutex_);
        auto found = blocks_.find(offset);
        if (found == blocks_.end() || found->second.host != host) return CUDA_ERROR_INVALID_VALUE;
        block = std::move(found->second);
        blocks_.erase(found);
    }
    if (fence_ && block.host && block.pinned) fence_->close_to(address, block.bytes);
    release_dying();
    CUresult status = release(offset, block);
    if (status != CUDA_ERROR_NOT_READY) return status;
    std::lock_guard lock(mutex_);
    dying_[offset] = std::move(block);
    return CUDA_SUCCESS;
}

CUresult Arena::release(uint64_t offset, const Block& block) {
    CUresult status = CUDA_SUCCESS;
    if (fence_ && block.host && block.pinned && !fence_->idle()) return CUDA_ERROR_NOT_READY;
    if (block.pinned) status = driver_.cuMemHostUnregister(reinterpret_cast<void*>(base_ + offset));
    if (status == CUDA_ERROR_NOT_READY) return status;
    if (!block.showing || show_own(offset, block.bytes)) give_pages(offset, block.bytes);
    return status;
}

void Arena::release_dying() {
    std::map<uint64_t, Block> dying;
    {
        std::lock_guard lock(mutex_);
        dying.swap(dying_);
    }
    std::erase_if(
        dying, [this](const auto& each) { return release(each.first, each.second) != CUDA_ERROR_NOT_READY; });
    std::lock_guard lock(mutex_);
    dying_.merge(dying);
}

// Punches a hole, which reads as zeros, and merges it with its free neighbours.
void Arena::give_pages(uint64_t offset, uint64_t bytes) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
    std::lock_guard lock(mutex_);
    auto hole = free_.emplace(offset, bytes).first;
    if (auto next = std::next(hole); next != free_.end() && hole->first + hole->second == next->first) {
        hole->second += next->second;
        free_.erase(next);
    }
    if (hole == free_.begin()) return;
    if (auto before = std::prev(hole); before->first + before->second == hole->first) {
        before->second += hole->second;
        free_.erase(hole);
    }
}

bool Arena::contains(uint64_t address, uint64_t bytes) const {
    if (address < base_ || address - base_ >= protocol::kArenaBytes) return false;
    uint64_t offset = address - base_;
    std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(offset);
    if (after == blocks_.begin()) return false;
    const auto& [start, block] = *std::prev(after);
    return block.host && offset - start <= block.bytes && bytes <= block.bytes - (offset - start);
}

void Arena::free_all_host() {
    std::vector<uint64_t> addresses;
    {
        std::lock_guard lock(mutex_);
        for (const auto& [offset, block] : blocks_) {
            if (block.host) addresses.push_back(base_ + offset);
        }
    }
    for (uint64_t address : addresses) free_host(address);
}

bool Arena::is_over(const Staging& staging) const {
    for (uint32_t i = 0; i < protocol::kStagingSlots; ++i)
        if (word(staging.first_word + i).load(std::memory_order_acquire) < staging.done_values[i])
            return false;
    return true;
}

CUresult Arena::open_staging(Staging* staging) {
    {
        std::lock_guard lock(mutex_);
        const auto idle =
            std::ranges::find_if(idle_staging_, [&](const Staging& each) { return is_over(each); });
        if (idle != idle_staging_.end()) {
            *staging = *idle;
            idle_staging_.erase(idle);
        }
    }
    if (staging->address == 0) {
        staging->first_word = take_words(protocol::kStagingSlots);
        if (staging->first_word == 0) return CUDA_ERROR_OUT_OF_MEMORY;
        CUresult status = allocate(kStagingBytes, true, &staging->address);
        if (status != CUDA_SUCCESS) return status;
    }
    for (uint32_t i = 0; i < protocol::kStagingSlots; ++i) {
        word(staging->first_word + i).store(0);
        staging->done_values[i] = 0;
    }
    return CUDA_SUCCESS;
}

void Arena::close_staging(const Staging& staging) {
    std::lock_guard lock(mutex_);
    idle_staging_.push_back(staging);
}

uint32_t Arena::take_words(uint32_t count) {
    std::lock_guard lock(mutex_);
    if (next_word_ + count > kWords) return 0;
    next_word_ += count;
    return next_word_ - count;
}

Arena::Word Arena::take_word() {
    {
        std::lock_guard lock(mutex_);
        for (size_t i = 0; i < idle_words_.size(); ++i) {
            Word found = idle_words_[i];
            if (word(found.index).load() < found.value) continue;  // its last value is still pending
            idle_words_[i] = idle_words_.back();
            idle_words_.pop_back();
            return found;
        }
    }
    return {take_words(1), 0};
}

void Arena::give_word(const Word& word) {
    if (word.index == 0) return;
    std::lock_guard lock(mutex_);
    idle_words_.push_back(word);
}

void Arena::release_words() {
    uint32_t end = 0;
    {
        std::lock_guard lock(mutex_);
        end = next_word_;
    }
    for (uint32_t i = protocol::kEventWords; i < end; ++i) word(i).store(protocol::kReleasedWord);
}

}  // namespace smt::runtime::server
