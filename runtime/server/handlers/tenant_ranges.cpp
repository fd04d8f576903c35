// See tenant_ranges.h. Two locks, because trim_all() takes each tenant's lock while it walks the
// tenants, and a tenant claims a range while it holds its own.
#include "runtime/server/handlers/tenant_ranges.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "runtime/server/handlers/tenant_memory.h"

namespace smt::runtime::server::handlers {

namespace {

struct Claim {
    const TenantMemory* tenant;
    uint64_t base;
    uint64_t bytes;
};

std::mutex tenants_mutex;
std::vector<TenantMemory*> tenants;
std::shared_mutex claims_mutex;
std::vector<Claim> claims;

}  // namespace

void TenantRanges::add(TenantMemory& tenant) {
    std::lock_guard lock(tenants_mutex);
    tenants.push_back(&tenant);
}

void TenantRanges::remove(const TenantMemory& tenant) {
    {
        std::lock_guard lock(tenants_mutex);
        std::erase(tenants, &tenant);
    }
    std::unique_lock lock(claims_mutex);
    std::erase_if(claims, [&](const Claim& claim) { return claim.tenant == &tenant; });
}

void TenantRanges::claim(const TenantMemory& tenant, uint64_t base, uint64_t bytes) {
    std::unique_lock lock(claims_mutex);
    claims.push_back({&tenant, base, bytes});
}

bool TenantRanges::may_touch(const TenantMemory& tenant, uint64_t address, uint64_t bytes) {
    if (address + bytes < address) return false;
    std::shared_lock lock(claims_mutex);
    return std::none_of(claims.begin(), claims.end(), [&](const Claim& claim) {
        return claim.tenant != &tenant && address < claim.base + claim.bytes &&
               claim.base < address + std::max<uint64_t>(bytes, 1);
    });
}

void TenantRanges::trim_all() {
    std::lock_guard lock(tenants_mutex);
    for (TenantMemory* tenant : tenants) tenant->trim();
}

}  // namespace smt::runtime::server::handlers
