// See tenant_ranges.h.
#include "runtime/server/memory/tenant_ranges.h"

#include <mutex>
#include <utility>
#include <vector>

#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

namespace {

std::mutex tenants_mutex;
std::vector<TenantMemory*> tenants;
std::function<void()> others;

}  // namespace

void TenantRanges::add(TenantMemory& tenant) {
    std::lock_guard lock(tenants_mutex);
    tenants.push_back(&tenant);
}

void TenantRanges::remove(const TenantMemory& tenant) {
    std::lock_guard lock(tenants_mutex);
    std::erase(tenants, &tenant);
}

void TenantRanges::trim_all() {
    std::function<void()> trim;
    {
        std::lock_guard lock(tenants_mutex);
        for (TenantMemory* tenant : tenants) tenant->trim();
        trim = others;
    }
    if (trim) trim();  // which may wait for kernels
}

void TenantRanges::trim_also(std::function<void()> trim) {
    std::lock_guard lock(tenants_mutex);
    others = std::move(trim);
}

uint64_t TenantRanges::movable_beside(const TenantMemory& tenant) {
    std::lock_guard lock(tenants_mutex);
    uint64_t bytes = 0;
    for (const TenantMemory* each : tenants)
        if (each != &tenant) bytes += each->bytes_movable();
    return bytes;
}

}  // namespace smt::runtime::server
