// Calls that natively affect a whole context and here the tenant only: context_preferences.h.
#include "runtime/server/code/code_table.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

CUresult cuCtxSetCacheConfig(Call& call, CUfunc_cache config) {
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    call.session.code().preferences().cache.store(config);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(Call& call, CUfunc_cache* config) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = call.session.code().preferences().cache.load();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(Call& call, CUsharedconfig config) {
    if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    call.session.code().preferences().banks.store(config);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(Call& call, CUsharedconfig* config) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = call.session.code().preferences().banks.load();
    return CUDA_SUCCESS;
}

// All tenants share the persisting L2 lines, so they are reset only if there is a single session.
CUresult cuCtxResetPersistingL2Cache(Call& call) {
    if (!call.driver.cuCtxResetPersistingL2Cache) return CUDA_ERROR_NOT_SUPPORTED;
    return call.session.server().status().sessions > 1 ? CUDA_SUCCESS
                                                       : call.driver.cuCtxResetPersistingL2Cache();
}

}  // namespace smt::runtime::server::served
