// What a tenant prefers for "its" context: how memory on a multiprocessor is split between cache and shared memory, and how wide
// the banks of shared memory are. The driver takes both as hints; in the shared context they would act on every tenant. So a tenant is told
// what it set, and the context keeps the driver's default. What a kernel of its own prefers (cuFuncSetCacheConfig) is passed on.
#pragma once

#include <cuda.h>

#include <atomic>

namespace smt::runtime::server::handlers {

struct ContextPreferences {
    std::atomic<CUfunc_cache> cache{CU_FUNC_CACHE_PREFER_NONE};
    std::atomic<CUsharedconfig> banks{CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE};

    void clear() {
        cache.store(CU_FUNC_CACHE_PREFER_NONE);
        banks.store(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE);
    }
};

}  // namespace smt::runtime::server::handlers
