// cuCtxSetLimit for each tenant: it is told what it set, and the shared context has the largest of
// what all tenants wanted. A limit is never lowered again: kernels of others may rely on it.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

#include "driver_api.gen.h"
#include "runtime/server/memory_account.h"

namespace smt::runtime::server::handlers {

class TenantMemory;

class Limits {
public:
    explicit Limits(const DriverApi& driver) : driver_(driver) {}

    // What a value takes beyond the default counts against the tenant's memory. threads: that the device holds at once,
    // each of which has a stack.
    CUresult set(CUlimit limit, size_t value, TenantMemory& memory, uint64_t threads);
    CUresult get(CUlimit limit, size_t* value);
    void clear();  // back to the defaults

private:
    const DriverApi& driver_;
    std::mutex mutex_;
    std::array<std::optional<size_t>, CU_LIMIT_MAX> wanted_;
    std::array<Charge, CU_LIMIT_MAX> charges_;
};

}  // namespace smt::runtime::server::handlers
