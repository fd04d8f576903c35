// Memory of a program's other GPUs, for kernels on this one: mapped at the addresses that the program knows.
// Sessions of all servers in a folder have different ranges (address_plan.h), so these are free here.
#include <algorithm>
#include <iterator>

#include "runtime/protocol/layout.h"
#include "runtime/protocol/try.h"
#include "runtime/server/memory/address_plan.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

CUresult TenantMemory::share_peer(CUdeviceptr address, SharedBlockPointer* block) {
    {
        Lock lock(mutex_);
        auto mapping = mappings_.upper_bound(address);
        const bool mapped = mapping != mappings_.begin() &&
                            address - std::prev(mapping)->first < std::prev(mapping)->second.bytes;
        if (mapped) {
            --mapping;
            const PhysicalPointer& memory = mapping->second.memory;
            const uint64_t base = mapping->first, bytes = mapping->second.bytes;
            if (!memory || memory->bytes() != bytes) return CUDA_ERROR_NOT_SUPPORTED;  // a part of it
            if (memory->handle() == 0) {
                CUmemGenericAllocationHandle own = 0;
                SMT_TRY(driver_.cuMemRetainAllocationHandle(&own, reinterpret_cast<void*>(base)));
                memory->own_handle(own);
            }
            auto& known = exported_[base];
            if (!known || known->memory != memory)
                known = std::make_shared<const SharedBlock>(SharedBlock{memory, 0, bytes, base});
            return *block = known, CUDA_SUCCESS;
        }
    }
    return share(address, block);
}

bool TenantMemory::open_otherwise(const SharedBlock& block) const {
    Lock lock(mutex_);
    return freed_peer(block) != peer_chunks_.end();
}

// What is open where that block's memory is now.
TenantMemory::PeerChunks::const_iterator TenantMemory::freed_peer(const SharedBlock& block) const {
    const uint64_t end = block.base + block.memory->bytes();
    return std::find_if(peer_chunks_.begin(), peer_chunks_.end(), [&](const auto& each) {
        return each.first < end && block.base < each.first + each.second.memory->bytes() &&
               each.second.number != block.number;
    });
}

CUresult TenantMemory::open_peer(const SharedBlock& block) {
    if (fence_) return CUDA_ERROR_NOT_SUPPORTED;  // its window is its own range
    const uint64_t base = block.base;
    Lock lock(mutex_);
    for (auto freed = freed_peer(block); freed != peer_chunks_.end(); freed = freed_peer(block))
        drop_peer_chunk(freed);
    if (!peer_chunks_.contains(base)) {
        SMT_TRY(map_peer(base, block.memory));
        peer_chunks_[base] = {block.memory, block.number, {}};
        own_.add(base, block.memory->bytes(), reinterpret_cast<const void*>(base));
    }
    if (peer_chunks_[base].blocks.insert({base + block.offset, block.bytes}).second)
        device_.allocated(base + block.offset, block.bytes);
    return CUDA_SUCCESS;
}

CUresult TenantMemory::close_peer(CUdeviceptr address, uint64_t bytes) {
    const auto inside = [&](uint64_t each) { return each >= address && each - address < bytes; };
    Lock lock(mutex_);
    bool any = false;
    for (auto chunk = peer_chunks_.begin(); chunk != peer_chunks_.end();) {
        const auto each = chunk++;
        std::erase_if(each->second.blocks, [&](const auto& block) {
            if (inside(block.first)) device_.freed(block.first, block.second), any = true;
            return inside(block.first);
        });
        if (each->second.blocks.empty()) drop_peer_chunk(each);
    }
    return any ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool TenantMemory::peer_is_open(CUdeviceptr address) const {
    Lock lock(mutex_);
    return std::any_of(peer_chunks_.begin(), peer_chunks_.end(), [&](const auto& chunk) {
        const auto behind = chunk.second.blocks.upper_bound(address);
        return behind != chunk.second.blocks.begin() &&
               address - std::prev(behind)->first < std::prev(behind)->second;
    });
}

CUresult TenantMemory::map_peer(uint64_t base, const PhysicalPointer& memory) {
    const uint64_t bytes = memory->bytes();
    SMT_TRY(open_window(base, bytes));
    const CUresult status = map_closed(base, bytes, memory->handle());
    if (status != CUDA_SUCCESS) leave_window(base);
    return status;
}

// The addresses around a chunk: all of the other session's device range, since the driver (580) takes a hint
// for ranges from 32 MiB on, at multiples of 32 MiB.
CUresult TenantMemory::open_window(uint64_t base, uint64_t bytes) {
    const uint64_t range = AddressPlan::device_range_of(base);
    const uint64_t wanted = range ? range : base;
    PeerWindow& window = peer_windows_[wanted];
    if (window.chunks++) return CUDA_SUCCESS;
    window.bytes = range ? protocol::kDeviceRangeBytes : bytes;
    CUdeviceptr place = 0;
    CUresult status = driver_.cuMemAddressReserve(&place, window.bytes, 0, wanted, 0);
    if (status == CUDA_SUCCESS && place == wanted) return CUDA_SUCCESS;
    if (status == CUDA_SUCCESS) {
        driver_.cuMemAddressFree(place, window.bytes);
        status = CUDA_ERROR_ALREADY_MAPPED;
    }
    peer_windows_.erase(wanted);
    return status;
}

void TenantMemory::leave_window(uint64_t base) {
    const auto window = std::prev(peer_windows_.upper_bound(base));
    if (--window->second.chunks) return;
    driver_.cuMemAddressFree(window->first, window->second.bytes);
    peer_windows_.erase(window);
}

void TenantMemory::drop_peer_chunk(PeerChunks::const_iterator chunk) {
    const auto& [base, peer] = *chunk;
    const uint64_t bytes = peer.memory->bytes();
    for (const auto& [address, size] : peer.blocks) device_.freed(address, size);
    own_.forget(reinterpret_cast<const void*>(base));
    driver_.cuMemUnmap(base, bytes);
    device_.forgotten(base, bytes);
    leave_window(base);
    peer_chunks_.erase(chunk);
}

}  // namespace smt::runtime::server
