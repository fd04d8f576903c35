// All tenants' memory in this process: which of them can give memory back. Any thread.
#pragma once

namespace smt::runtime::server::handlers {

class TenantMemory;

class TenantRanges {
public:
    static void add(TenantMemory& tenant);
    static void remove(const TenantMemory& tenant);
    // Every tenant gives its idle memory back. No TenantMemory's lock may be held.
    static void trim_all();
};

}  // namespace smt::runtime::server::handlers
