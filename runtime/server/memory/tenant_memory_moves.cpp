// Suspension: a tenant's chunks in host memory, and back.
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

// The copies take long, and are made without the lock: other tenants that run out of memory ask this one for
// what is idle.
ChunkMover::Outcome TenantMemory::copy_out() {
    std::vector<ChunkMover::Chunk> chunks;
    trim();
    {
        Lock lock(mutex_);
        moves_ = true;
        const auto add = [&](uint64_t base, uint64_t bytes) {
            if (shared_chunks_.contains(base)) return;  // other sessions may have it mapped
            const auto kept = kept_chunks_.find(base);
            chunks.push_back({base, bytes, kept == kept_chunks_.end() ? 0 : kept->second});
        };
        for (const auto& [base, bytes] : slabs_.regions()) add(base, bytes);
        for (const auto& [base, chunk] : large_) add(base, chunk.bytes);
    }
    const ChunkMover::Outcome outcome = mover_.copy_out(chunks);
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

ChunkMover::Outcome TenantMemory::bring_in() {
    const std::vector<uint64_t> away = mover_.away();
    const ChunkMover::Outcome outcome = mover_.bring_in(away);
    if (outcome.status != CUDA_SUCCESS) return outcome;
    Lock lock(mutex_);
    for (const uint64_t base : away)
        if (const uint64_t kept = mover_.kept(base)) kept_chunks_[base] = kept;
    return outcome;
}

void TenantMemory::forget_copies() {
    for (const uint64_t base : mover_.copied()) mover_.forget_copy(base);
    Lock lock(mutex_);
    moves_ = !mover_.away().empty();
}

}  // namespace smt::runtime::server
