// How much of a tenant's memory there is, and what it is used for.
#include <algorithm>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/memory/tenant_ranges.h"

namespace smt::runtime::server {

CUresult TenantMemory::info(uint64_t* free, uint64_t* total) {
    size_t device_free = 0, device_total = 0;
    SMT_TRY(device_.physical_memory().room(&device_free, &device_total));
    const uint64_t others = oversubscribes_ ? TenantRanges::movable_beside(*this) : 0;
    Lock lock(mutex_);
    uint64_t available = device_free + idle_bytes() + others;
    const uint64_t limit = account_->whole().limit(), held = account_->whole().held();
    *total = limit ? std::min<uint64_t>(limit, device_total) : device_total;
    uint64_t in_use = held - std::min(held, idle_bytes());
    *free = std::min(available, *total - std::min(*total, in_use));
    return CUDA_SUCCESS;
}

protocol::MemoryFigures TenantMemory::figures() const {
    protocol::MemoryFigures figures;
    Lock lock(mutex_);
    uint64_t chunks = cached_bytes_ + slabs_.region_bytes();
    figures.asked = slabs_.requested_bytes();
    for (const auto& [base, chunk] : large_) {
        chunks += chunk.bytes;
        figures.asked += chunk.requested;
    }
    figures.idle = idle_bytes();
    figures.lost = chunks - figures.idle - figures.asked;
    figures.other = account_->held() - std::min(chunks, account_->held());
    figures.zeroed = zeroed_bytes_;
    figures.zeroing_us = zeroing_ns_ / 1000;
    figures.tenant_held = account_->whole().held();
    figures.refused = account_->refused();
    return figures;
}

}  // namespace smt::runtime::server
