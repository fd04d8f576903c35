// What another process needs of a tenant's memory to take it over: the keeper's chunks, and which blocks of
// them are in use.
#include <algorithm>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

namespace {

constexpr uint32_t kMemoryPart = 0x4d454d4f;

}  // namespace

std::string TenantMemory::why_not_carried() const {
    if (graphs_.any()) return "it has memory of graphs";
    Lock lock(mutex_);
    if (!reservations_.empty() || !mappings_.empty() || !physical_.empty()) return "it maps memory by itself";
    if (!exported_.empty() || !opened_.empty() || !shared_chunks_.empty() || !peer_chunks_.empty())
        return "it shares memory with other processes";
    if (!further_ranges_.empty()) return "it has more than one range of addresses";
    if (!held_.empty()) return "it has arrays";
    const auto kept = [&](uint64_t base) { return kept_chunks_.contains(base); };
    bool all = true;
    for (const auto& [base, bytes] : slabs_.regions()) all = all && kept(base);
    for (const auto& [base, chunk] : large_) all = all && kept(base);
    for (const auto& [bytes, base] : cached_) all = all && kept(base);
    return all ? "" : "memory of it is not the keeper's";
}

void TenantMemory::save(protocol::StateWriter& out) {
    using Kind = SavedChunk::Kind;
    pools_.over();
    std::vector<SavedChunk> chunks;
    std::vector<uint64_t> blocks;
    {
        Lock lock(mutex_);
        // A chunk that has left the device since why_not_carried() has none. The state is out of date then.
        const auto id = [&](uint64_t base) {
            const auto kept = kept_chunks_.find(base);
            return kept == kept_chunks_.end() ? 0 : kept->second;
        };
        for (const auto& [base, bytes] : slabs_.regions())
            chunks.push_back({Kind::kSlab, base, bytes, 0, id(base)});
        for (const auto& [base, chunk] : large_)
            chunks.push_back({Kind::kLarge, base, chunk.bytes, chunk.requested, id(base)});
        for (const auto& [bytes, base] : cached_) chunks.push_back({Kind::kCached, base, bytes, 0, id(base)});
        for (const BlockAllocator::Block& block : slabs_.used())
            blocks.push_back(block.base), blocks.push_back(block.requested);
    }
    out.part(kMemoryPart);
    out.list(chunks);
    out.list(blocks);
    pools_.save(out);
}

CUresult TenantMemory::restore(protocol::Reader& in, const Claim& claim) {
    if (!protocol::take_part(in, kMemoryPart)) return CUDA_ERROR_INVALID_VALUE;
    const std::vector<SavedChunk> chunks = protocol::take_list<SavedChunk>(in);
    const std::vector<uint64_t> blocks = protocol::take_list<uint64_t>(in);
    {
        Lock lock(mutex_);
        for (const SavedChunk& chunk : chunks) SMT_TRY(restore_chunk(chunk, claim));
        for (size_t i = 0; i + 1 < blocks.size(); i += 2) {
            if (!slabs_.allocate_at(blocks[i], blocks[i + 1])) return CUDA_ERROR_INVALID_VALUE;
            device_.allocated(blocks[i], blocks[i + 1]);
        }
    }
    pools_.restore(in);
    return in.good() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Caller holds mutex_.
CUresult TenantMemory::restore_chunk(const SavedChunk& chunk, const Claim& claim) {
    using Kind = SavedChunk::Kind;
    if (!in_device_range(chunk.base, chunk.bytes) || chunk.bytes % kChunkBytes != 0 ||
        !addresses_.allocate_at(chunk.base, chunk.bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!account_->take(chunk.bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUmemGenericAllocationHandle handle = 0;
    CUresult status = claim(chunk.id, chunk.bytes, &handle);
    if (status == CUDA_SUCCESS) {
        status = map(chunk.base, chunk.bytes, handle);
        driver_.cuMemRelease(handle);
    }
    if (status != CUDA_SUCCESS) {
        addresses_.release(chunk.base);
        account_->give(chunk.bytes);
        return status;
    }
    kept_chunks_[chunk.base] = chunk.id;
    if (chunk.kind == Kind::kSlab) {
        slabs_.add(chunk.base, chunk.bytes);
    } else if (chunk.kind == Kind::kLarge) {
        large_[chunk.base] = {chunk.bytes, chunk.requested};
        device_.allocated(chunk.base, chunk.requested);
    } else {
        cached_.insert({chunk.bytes, chunk.base});
        cached_bytes_ += chunk.bytes;
    }
    return CUDA_SUCCESS;
}

CUresult TenantMemory::copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
    Lock lock(mutex_);
    if (device_.properties().keeps_sessions_apart && !stream_)
        driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
    CUstream const stream = stream_ ? stream_ : device_.errands();
    SMT_TRY(driver_.cuMemcpyDtoDAsync_v2(to, from, bytes, stream));
    return driver_.cuStreamSynchronize(stream);
}

CUresult TenantMemory::write(CUdeviceptr address, uint64_t bytes, const std::vector<Value>& values) {
    Lock lock(mutex_);
    SMT_TRY(zero(address, bytes));
    if (values.empty()) return CUDA_SUCCESS;
    CUstream const stream = stream_ ? stream_ : device_.errands();
    for (const Value& value : values)
        SMT_TRY(driver_.cuMemcpyHtoDAsync_v2(address + value.offset, value.from, value.bytes, stream));
    return driver_.cuStreamSynchronize(stream);
}

}  // namespace smt::runtime::server
