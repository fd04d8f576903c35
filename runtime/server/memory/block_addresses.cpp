// See block_addresses.h.
#include "runtime/server/memory/block_addresses.h"

#include <sys/mman.h>

namespace smt::runtime::server {

namespace {

constexpr uint64_t kHugePage = 2ull << 20;

}  // namespace

BlockAddresses::BlockAddresses(uint64_t piece, uint64_t bytes) : piece_(piece) {
    const uint64_t pieces = bytes / piece;
    if (pieces == 0) return;
    begin_ = map(pieces * piece);
    if (!begin_) return;
    left_.reserve(pieces);
    bytes_ = pieces * piece;
    for (uint64_t at = bytes_; at > 0; at -= piece) left_.push_back(begin_ + at - piece);
}

BlockAddresses::~BlockAddresses() {
    if (begin_) munmap(begin_, bytes_);
}

// From a multiple of a huge page on.
char* BlockAddresses::map(uint64_t bytes) const {
    void* const all = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    const uint64_t before = -reinterpret_cast<uint64_t>(all) % kHugePage;
    char* const begin = static_cast<char*>(all) + before;
    if (before > 0) munmap(all, before);
    munmap(begin + bytes, kHugePage - before);
    madvise(begin, bytes, MADV_HUGEPAGE);  // fewer pages to pin; no matter if there are none
    return begin;
}

char* BlockAddresses::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!left_.empty()) {
            char* const piece = left_.back();
            left_.pop_back();
            return piece;
        }
    }
    return map(piece_);
}

void BlockAddresses::give_back(char* piece) {
    if (piece < begin_ || piece >= begin_ + bytes_) {
        munmap(piece, piece_);
        return;
    }
    madvise(piece, piece_, MADV_DONTNEED);
    const std::lock_guard lock(mutex_);
    left_.push_back(piece);  // within its capacity
}

}  // namespace smt::runtime::server
