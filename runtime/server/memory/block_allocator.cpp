// See block_allocator.h.
#include "runtime/server/memory/block_allocator.h"

#include <algorithm>

namespace smt::runtime::server {

uint64_t BlockAllocator::rounded(uint64_t bytes) const {
    uint64_t up = (std::max<uint64_t>(bytes, 1) + granularity_ - 1) & ~(granularity_ - 1);
    return up < bytes ? 0 : up;
}

void BlockAllocator::add(uint64_t base, uint64_t bytes) {
    regions_[base] = {bytes, 0};
    idle_bytes_ += bytes;
    region_bytes_ += bytes;
    insert_free(base, bytes);
}

std::pair<uint64_t, uint64_t> BlockAllocator::take_idle_region() {
    if (idle_bytes_ == 0) return {0, 0};
    for (auto region = regions_.begin(); region != regions_.end(); ++region) {
        if (region->second.blocks != 0) continue;
        std::pair<uint64_t, uint64_t> taken{region->first, region->second.bytes};
        erase_free(free_.find(taken.first));  // a free region is one free block
        idle_bytes_ -= taken.second;
        region_bytes_ -= taken.second;
        regions_.erase(region);
        return taken;
    }
    return {0, 0};
}

uint64_t BlockAllocator::allocate(uint64_t bytes, uint64_t alignment) {
    uint64_t taken = rounded(bytes);
    if (taken == 0) return 0;
    alignment = std::max(alignment, granularity_);
    for (auto found = free_by_size_.lower_bound({taken, 0}); found != free_by_size_.end(); ++found) {
        auto [size, base] = *found;
        uint64_t at = (base + alignment - 1) & ~(alignment - 1);
        if (at < base || at - base > size - taken) continue;
        return carve(free_.find(base), at, taken, bytes);
    }
    return 0;
}

uint64_t BlockAllocator::allocate_at(uint64_t address, uint64_t bytes) {
    uint64_t taken = rounded(bytes);
    if (taken == 0 || address % granularity_ != 0) return 0;
    auto next = free_.upper_bound(address);
    if (next == free_.begin()) return 0;
    auto block = std::prev(next);
    uint64_t skipped = address - block->first;
    if (skipped > block->second || taken > block->second - skipped) return 0;
    return carve(block, address, taken, bytes);
}

uint64_t BlockAllocator::release(uint64_t address) {
    auto found = used_.find(address);
    if (found == used_.end()) return 0;
    uint64_t released = found->second.bytes;
    uint64_t base = address;
    uint64_t bytes = released;
    requested_bytes_ -= found->second.requested;
    used_.erase(found);
    used_bytes_ -= released;

    auto next = free_.find(base + bytes);
    if (next != free_.end() && !regions_.contains(next->first)) {
        bytes += next->second;
        erase_free(next);
    }
    auto after = free_.lower_bound(base);
    if (after != free_.begin() && !regions_.contains(base)) {
        auto previous = std::prev(after);
        if (previous->first + previous->second == base) {
            base = previous->first;
            bytes += previous->second;
            erase_free(previous);
        }
    }
    insert_free(base, bytes);
    Region& region = region_of(address);
    if (--region.blocks == 0) idle_bytes_ += region.bytes;
    return released;
}

void BlockAllocator::release_all() {
    while (!used_.empty()) release(used_.begin()->first);
}

BlockAllocator::Block BlockAllocator::find(uint64_t address) const {
    auto next = used_.upper_bound(address);
    if (next == used_.begin()) return {};
    const Block& block = std::prev(next)->second;
    return address - block.base < block.bytes ? block : Block{};
}

std::vector<BlockAllocator::Block> BlockAllocator::used() const {
    std::vector<Block> all;
    for (const auto& [base, block] : used_) all.push_back(block);
    return all;
}

std::vector<std::pair<uint64_t, uint64_t>> BlockAllocator::regions() const {
    std::vector<std::pair<uint64_t, uint64_t>> all;
    for (const auto& [base, region] : regions_) all.emplace_back(base, region.bytes);
    return all;
}

BlockAllocator::Region& BlockAllocator::region_of(uint64_t address) {
    return std::prev(regions_.upper_bound(address))->second;
}

void BlockAllocator::insert_free(uint64_t base, uint64_t bytes) {
    free_[base] = bytes;
    free_by_size_.insert({bytes, base});
}

void BlockAllocator::erase_free(Blocks::iterator block) {
    free_by_size_.erase({block->second, block->first});
    free_.erase(block);
}

uint64_t BlockAllocator::carve(Blocks::iterator block, uint64_t at, uint64_t bytes, uint64_t requested) {
    auto [base, size] = *block;
    erase_free(block);
    if (at != base) insert_free(base, at - base);
    if (at + bytes != base + size) insert_free(at + bytes, base + size - at - bytes);
    used_[at] = {at, bytes, requested};
    used_bytes_ += bytes;
    requested_bytes_ += requested;
    Region& region = region_of(at);
    if (region.blocks++ == 0) idle_bytes_ -= region.bytes;
    return at;
}

}  // namespace smt::runtime::server
