// See tenant_addresses.h.
#include "runtime/server/memory/tenant_addresses.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "runtime/server/memory/arena.h"

namespace smt::runtime::server {

void TenantAddresses::add(uint64_t base, uint64_t bytes, const void* owner) {
    std::unique_lock lock(mutex_);
    places_.insert_or_assign(base, Place{bytes, owner});
}

void TenantAddresses::forget(const void* owner) {
    std::unique_lock lock(mutex_);
    std::erase_if(places_, [owner](const auto& each) { return each.second.owner == owner; });
    constants_.forget(owner);
}

bool TenantAddresses::any_elsewhere() const {
    std::shared_lock lock(mutex_);
    return !places_.empty();
}

bool TenantAddresses::elsewhere(uint64_t address, uint64_t bytes) const {
    {
        std::shared_lock lock(mutex_);
        auto next = places_.upper_bound(address);
        if (next != places_.begin()) {
            const auto& [base, place] = *std::prev(next);
            const uint64_t skipped = address - base;
            if (skipped < place.bytes && bytes <= place.bytes - skipped) return true;
        }
    }
    return constants_.meet(address, bytes) || arena_.contains(address, bytes);
}

}  // namespace smt::runtime::server
