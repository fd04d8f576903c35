// prefers: says what its context prefers, sets it, says it again, and stays until its input ends.
#include "tests/preload/program.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs of older CUDA call them

void say() {
    CUfunc_cache cache{};
    CUsharedconfig banks{};
    CHECK(cuCtxGetCacheConfig(&cache));
    CHECK(cuCtxGetSharedMemConfig(&banks));
    std::printf("%d %d\n", static_cast<int>(cache), static_cast<int>(banks));
    std::fflush(stdout);
}

int main() {
    preload::start();
    say();
    CHECK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    CHECK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    FAILS(cuCtxSetCacheConfig(static_cast<CUfunc_cache>(99)), CUDA_ERROR_INVALID_VALUE);
    say();
    while (std::getchar() != EOF) continue;
}
