// cuCtxSetLimit per tenant. A tenant reads back what it set. The shared context has the maximum of all
// tenants' values. A limit is never lowered, because kernels of other tenants may rely on it. Any thread.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/server/memory/memory_account.h"

namespace smt::runtime::server {

class TenantMemory;

class Limits {
public:
    explicit Limits(const DriverApi& driver) : driver_(driver) {}

    // Memory beyond the default value's counts against the tenant's limit. `threads`: the number of threads
    // that the device can have resident; each has a stack.
    CUresult set(CUlimit limit, size_t value, TenantMemory& memory, uint64_t threads);
    CUresult get(CUlimit limit, size_t* value);
    std::vector<std::pair<CUlimit, size_t>> wanted() const;  // what the tenant set
    void clear();                                            // back to the defaults

private:
    const DriverApi& driver_;
    mutable std::mutex mutex_;
    std::array<std::optional<size_t>, CU_LIMIT_MAX> wanted_;
    std::array<Charge, CU_LIMIT_MAX> charges_;
};

}  // namespace smt::runtime::server
