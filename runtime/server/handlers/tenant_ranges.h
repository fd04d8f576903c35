// All tenants' memory in this process: who may name which address, and who can give memory back.
// Any thread; the callers' own locks may be held except for trim_all().
#pragma once

#include <cstdint>

namespace smt::runtime::server::handlers {

class TenantMemory;

class TenantRanges {
public:
    static void add(TenantMemory& tenant);
    static void remove(const TenantMemory& tenant);  // with its claims
    static void claim(const TenantMemory& tenant, uint64_t base, uint64_t bytes);

    // Whether no other tenant has claimed any of the bytes.
    static bool may_touch(const TenantMemory& tenant, uint64_t address, uint64_t bytes);
    // Every tenant gives its idle memory back. No TenantMemory's lock may be held.
    static void trim_all();
};

}  // namespace smt::runtime::server::handlers
