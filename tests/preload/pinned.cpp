// Synchronous copies into pinned memory, each behind a kernel that stands at a gate and then writes:
// on the same stream, on one that the legacy stream waits for, and on one that waits for it.
#include "tests/preload/program.h"

constexpr char kImage[] = "FAKE\nkernel gate params 4\nkernel fill params 8,4,4\n";

extern "C" CUresult cuMemcpyDtoH_v2_ptds(void*, CUdeviceptr, size_t);   // cuda.h has one of the two forms at a time

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction gate = nullptr, fill = nullptr;
    CUdeviceptr memory = 0;
    void* pinned = nullptr;
    CUstream blocking = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&gate, module, "gate"));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CHECK(cuMemAlloc(&memory, sizeof(int)));
    CHECK(cuMemHostAlloc(&pinned, sizeof(int), 0));
    CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    int& seen = *static_cast<int*>(pinned);
    seen = 0;
    CHECK(cuMemcpyHtoD(memory, pinned, sizeof(int)));   // nothing before it: at once

    auto write_behind_gate = [&](int number, CUstream stream) {
        int one = 1;
        void* gate_parameters[] = {&number};
        void* fill_parameters[] = {&memory, &number, &one};
        CHECK(cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, stream, gate_parameters, nullptr));
        CHECK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, fill_parameters, nullptr));
    };
    write_behind_gate(1, CU_STREAM_LEGACY);
    CHECK(cuMemcpyDtoH(pinned, memory, sizeof(int)));
    REQUIRE(seen == 1);
    write_behind_gate(2, blocking);
    CHECK(cuMemcpyDtoH(pinned, memory, sizeof(int)));
    REQUIRE(seen == 2);
    write_behind_gate(3, CU_STREAM_LEGACY);
    CHECK(cuMemcpyDtoH_v2_ptds(pinned, memory, sizeof(int)));
    REQUIRE(seen == 3);
    CHECK(cuStreamDestroy(blocking));
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree(memory));
}
