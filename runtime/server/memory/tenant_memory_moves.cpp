// Suspension: a tenant's chunks in host memory, and back.
#include <algorithm>

#include "runtime/server/memory/physical_allocation.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

namespace {

// Of chunks, largest first, as few bytes as are enough, more or less: the largest that fit, and the smallest
// one for the rest.
std::vector<ChunkMover::Chunk> enough_of(const std::vector<ChunkMover::Chunk>& all, uint64_t least) {
    std::vector<ChunkMover::Chunk> chosen;
    const ChunkMover::Chunk* smallest = nullptr;  // of those that are larger than what was left
    for (const ChunkMover::Chunk& each : all) {
        if (least == 0) break;
        if (each.bytes > least) {
            smallest = &each;
            continue;
        }
        chosen.push_back(each);
        least -= each.bytes;
    }
    if (least != 0 && smallest) chosen.push_back(*smallest);
    return chosen;
}

}  // namespace

// Without those that are away, or that other sessions may have mapped.
std::vector<ChunkMover::Chunk> TenantMemory::movable() const {
    std::vector<ChunkMover::Chunk> chunks;
    std::vector<uint64_t> away = mover_.away();
    std::sort(away.begin(), away.end());
    const auto add = [&](uint64_t base, uint64_t bytes) {
        if (shared_chunks_.contains(base) || std::binary_search(away.begin(), away.end(), base)) return;
        const auto kept = kept_chunks_.find(base);
        chunks.push_back({base, bytes, kept == kept_chunks_.end() ? 0 : kept->second});
    };
    for (const auto& [base, bytes] : slabs_.regions()) add(base, bytes);
    for (const auto& [base, chunk] : large_) add(base, chunk.bytes);
    std::stable_sort(chunks.begin(), chunks.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return chunks;
}

uint64_t TenantMemory::bytes_movable() const {
    Lock lock(mutex_);
    uint64_t bytes = slabs_.region_bytes();
    for (const auto& [base, chunk] : large_) bytes += chunk.bytes;
    for (const auto& [base, memory] : shared_chunks_) bytes -= std::min(memory->bytes(), bytes);
    return bytes - std::min(bytes, mover_.bytes_away());
}

// What was idle need not be moved, too.
TenantMemory::Chunks TenantMemory::choose(uint64_t least, uint64_t* freed) {
    const uint64_t held = account_->held();
    trim();
    *freed = held - std::min(held, account_->held());
    Lock lock(mutex_);
    moves_ = true;
    return enough_of(movable(), least - std::min(least, *freed));
}

// The copies take long, and are made without the lock: other tenants that run out of memory ask this one for
// what is idle.
ChunkMover::Outcome TenantMemory::copy_out(uint64_t least) {
    uint64_t freed = 0;
    const ChunkMover::Outcome outcome = mover_.copy_out(choose(least, &freed));
    if (outcome.status != CUDA_SUCCESS) forget_copies();
    return outcome;
}

void TenantMemory::release_copied() {
    for (const uint64_t base : mover_.copied()) {
        if (mover_.release(base) != CUDA_SUCCESS) continue;
        Lock lock(mutex_);
        kept_chunks_.erase(base);
    }
}

ChunkMover::Outcome TenantMemory::bring_in() { return bring_in(mover_.away()); }

ChunkMover::Outcome TenantMemory::bring_in(const std::vector<uint64_t>& bases) {
    const ChunkMover::Outcome outcome = mover_.bring_in(bases);
    if (outcome.status != CUDA_SUCCESS) return outcome;
    Lock lock(mutex_);
    for (const uint64_t base : bases)
        if (const uint64_t kept = mover_.kept(base)) kept_chunks_[base] = kept;
    return outcome;
}

void TenantMemory::forget_copies() {
    for (const uint64_t base : mover_.copied()) mover_.forget_copy(base);
    Lock lock(mutex_);
    moves_ = !mover_.away().empty();
}

}  // namespace smt::runtime::server
