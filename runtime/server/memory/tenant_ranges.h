// The registry of all TenantMemory objects of this process. Any thread.
#pragma once

namespace smt::runtime::server {

class TenantMemory;

class TenantRanges {
public:
    static void add(TenantMemory& tenant);
    static void remove(const TenantMemory& tenant);
    // All tenants return their idle memory to the driver. The caller must not hold a TenantMemory's lock.
    static void trim_all();
};

}  // namespace smt::runtime::server
