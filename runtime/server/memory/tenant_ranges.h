// The registry of all TenantMemory objects of this process. Any thread.
#pragma once

#include <cstdint>
#include <functional>

namespace smt::runtime::server {

class TenantMemory;

class TenantRanges {
public:
    static void add(TenantMemory& tenant);
    static void remove(const TenantMemory& tenant);
    // All tenants return their idle memory to the driver. The caller must not hold a TenantMemory's lock.
    static void trim_all();
    // What trim_all() calls, too; null: nothing.
    static void trim_also(std::function<void()> trim);
    // Bytes on the device that the others' chunks have, and that could be moved out. Likewise.
    static uint64_t movable_beside(const TenantMemory& tenant);
};

}  // namespace smt::runtime::server
