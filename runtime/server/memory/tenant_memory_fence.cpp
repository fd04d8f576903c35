// How chunks come and leave. With a fence they are opened to kernels last, and closed to them first; then
// they stay mapped until no kernel that might still access them is under way.
#include <algorithm>
#include <utility>

#include "runtime/server/memory/fence.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

CUresult TenantMemory::open_to_kernels(uint64_t base, uint64_t bytes) {
    const CUresult status = fence_ ? fence_->open_to(base, bytes) : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS) return status;
    fence_->close_to(base, bytes);
    driver_.cuMemUnmap(base, bytes);
    return status;
}

void TenantMemory::drop_chunk(uint64_t base, uint64_t bytes) {
    if (fence_) fence_->close_to(base, bytes);
    if (may_unmap())
        unmap_chunk(base, bytes);
    else
        left_[base] = bytes;
}

bool TenantMemory::may_unmap() { return !fence_ || clearing_ || fence_->idle(); }

void TenantMemory::unmap_left() {
    if (!fence_) return;
    const auto is_closed = [](const auto& each) { return each.second.times == 0; };
    if (left_.empty() && std::ranges::none_of(opened_, is_closed)) return;
    if (!may_unmap()) return;
    for (const auto& [base, bytes] : std::exchange(left_, {})) unmap_chunk(base, bytes);
    std::erase_if(opened_, [&](const auto& each) {
        if (is_closed(each)) unmap_opened(each.first, each.second);
        return is_closed(each);
    });
}

void TenantMemory::unmap_chunk(uint64_t base, uint64_t bytes) {
    const bool shared = shared_chunks_.contains(base);
    device::PhysicalMemory::Made memory;
    if (mover_.drop(base)) {
        if (!shared && driver_.cuMemRetainAllocationHandle)
            driver_.cuMemRetainAllocationHandle(&memory.handle, reinterpret_cast<void*>(base));
        if (driver_.cuMemUnmap(base, bytes) != CUDA_SUCCESS && memory.handle)
            driver_.cuMemRelease(std::exchange(memory.handle, 0));  // it stays mapped
    }
    if (const auto kept = kept_chunks_.extract(base)) memory.id = kept.mapped();
    shared_chunks_.erase(base);
    if (!shared) {  // else its last owner does these two
        device_.physical_memory().give_back(memory, bytes);
        account_->give(bytes);
    }
    addresses_.release(base);
}

}  // namespace smt::runtime::server
