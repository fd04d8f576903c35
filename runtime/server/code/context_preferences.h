// A tenant's context preferences: the split of an SM's memory between L1 cache and shared memory, and the
// bank width of shared memory. The driver takes both as hints. In the shared context they would affect every
// tenant. Therefore a tenant reads back what it set, and the context keeps the driver's default. Per-kernel
// preferences (cuFuncSetCacheConfig) are passed on.
#pragma once

#include <cuda.h>

#include <atomic>

namespace smt::runtime::server {

struct ContextPreferences {
    std::atomic<CUfunc_cache> cache{CU_FUNC_CACHE_PREFER_NONE};
    std::atomic<CUsharedconfig> banks{CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE};

    void clear() {
        cache.store(CU_FUNC_CACHE_PREFER_NONE);
        banks.store(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE);
    }
};

}  // namespace smt::runtime::server
