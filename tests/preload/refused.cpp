// Calls that smt does not do: one of which it does nothing, and a form of one that the server refuses.
#include "tests/preload/program.h"

int main() {
    preload::start();
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, 4096));
    size_t granularity = 0;
    for (int i = 0; i < 2; ++i)
        FAILS(cuMulticastGetGranularity(&granularity, nullptr, CU_MULTICAST_GRANULARITY_MINIMUM),
              CUDA_ERROR_NOT_SUPPORTED);
    CUmemGenericAllocationHandle physical = 0;
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    FAILS(cuMemCreate(&physical, 2 << 20, &wanted, 0), CUDA_ERROR_NOT_SUPPORTED);
    CHECK(cuMemFree(memory));
}
