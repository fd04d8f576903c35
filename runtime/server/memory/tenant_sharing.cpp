// Memory that several sessions of one tenant use. An importer maps the exporter's physical memory at
// addresses of its own, so each check of an address holds for it as for other memory of the session, and the
// driver keeps the memory until the last of them has unmapped it.
#include <algorithm>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/fence.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

CUresult TenantMemory::share(CUdeviceptr address, SharedBlockPointer* block) {
    Lock lock(mutex_);
    BlockAllocator::Block found = slabs_.find(address);
    uint64_t chunk = 0, chunk_bytes = 0;
    auto large = large_.upper_bound(address);
    if (large != large_.begin() && address - std::prev(large)->first < std::prev(large)->second.bytes) {
        --large;
        found = {large->first, large->second.bytes, large->second.requested};
        chunk = large->first;
        chunk_bytes = large->second.bytes;
    } else {
        for (const auto& [base, bytes] : slabs_.regions())
            if (found.bytes && found.base - base < bytes) chunk = base, chunk_bytes = bytes;
    }
    if (chunk_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (auto known = exported_.find(found.base); known != exported_.end())
        return *block = known->second, CUDA_SUCCESS;
    PhysicalPointer& memory = shared_chunks_[chunk];
    if (!memory) {
        CUmemGenericAllocationHandle handle = 0;
        const CUresult status = driver_.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(chunk));
        if (status != CUDA_SUCCESS) return shared_chunks_.erase(chunk), status;
        const auto kept = kept_chunks_.find(chunk);
        memory = std::make_shared<PhysicalAllocation>(device_, chunk_bytes,
                                                      Charge::of_taken(account_, chunk_bytes),
                                                      kept == kept_chunks_.end() ? 0 : kept->second, false);
        memory->own_handle(handle);
    }
    *block = exported_[found.base] =
        std::make_shared<const SharedBlock>(SharedBlock{memory, found.base - chunk, found.requested, chunk});
    return CUDA_SUCCESS;
}

CUresult TenantMemory::open_shared(const SharedBlockPointer& block, CUdeviceptr* address) {
    Lock lock(mutex_);
    for (auto& [at, opened] : opened_) {
        if (opened.block.lock() != block) continue;
        ++opened.times;
        return *address = at, CUDA_SUCCESS;
    }
    const PhysicalPointer& memory = block->memory;
    const uint64_t base = take_addresses(memory->bytes(), kChunkBytes, 0);
    if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const CUresult status = map(base, memory->bytes(), memory->handle()); status != CUDA_SUCCESS)
        return addresses_.release(base), status;
    *address = base + block->offset;
    opened_[*address] = {block, block->foreign ? block : nullptr, memory, base, block->bytes, 1};
    device_.allocated(*address, block->bytes);
    return CUDA_SUCCESS;
}

CUresult TenantMemory::close_shared(CUdeviceptr address) {
    Lock lock(mutex_);
    const auto opened = opened_.find(address);
    if (opened == opened_.end() || opened->second.times == 0) return CUDA_ERROR_INVALID_VALUE;
    if (--opened->second.times != 0) return CUDA_SUCCESS;
    if (fence_) fence_->close_to(opened->second.base, opened->second.memory->bytes());
    if (!may_unmap()) {  // it is closed, and stays mapped
        opened->second.block.reset();
        return CUDA_SUCCESS;
    }
    unmap_opened(opened->first, opened->second);
    opened_.erase(opened);
    return CUDA_SUCCESS;
}

void TenantMemory::unmap_opened(CUdeviceptr address, const Opened& opened) {
    device_.freed(address, opened.bytes);
    driver_.cuMemUnmap(opened.base, opened.memory->bytes());
    addresses_.release(opened.base);
}

void TenantMemory::forget_shared() {
    for (const auto& [address, opened] : opened_) unmap_opened(address, opened);
    opened_.clear();
    exported_.clear();
    while (!peer_chunks_.empty()) drop_peer_chunk(peer_chunks_.begin());
}

bool TenantMemory::open_elsewhere(uint64_t chunk) const {
    const auto shared = shared_chunks_.find(chunk);
    return shared != shared_chunks_.end() && (shared->second.use_count() > 1 || shared->second->given_out());
}

}  // namespace smt::runtime::server
