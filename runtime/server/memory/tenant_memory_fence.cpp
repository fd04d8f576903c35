// How chunks leave. With a fence they are closed to kernels first, and stay mapped until none that might
// still access them is under way.
#include <utility>

#include "runtime/server/memory/fence.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

CUresult TenantMemory::unmap(uint64_t base, uint64_t bytes) {
    if (fence_) fence_->close_to(base, bytes);
    return driver_.cuMemUnmap(base, bytes);
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
    if (left_.empty() || !may_unmap()) return;
    for (const auto& [base, bytes] : std::exchange(left_, {})) unmap_chunk(base, bytes);
}

void TenantMemory::unmap_chunk(uint64_t base, uint64_t bytes) {
    if (mover_.drop(base)) driver_.cuMemUnmap(base, bytes);
    const auto kept = kept_chunks_.extract(base);
    if (shared_chunks_.erase(base) == 0) {  // else its last owner does these two
        if (kept) device_.physical_memory().forget(kept.mapped());
        account_->give(bytes);
    }
    addresses_.release(base);
}

}  // namespace smt::runtime::server
