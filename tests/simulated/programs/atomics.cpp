// Atomics for the whole system are refused on managed memory, which the host may update meanwhile, and
// nowhere else.
#include "tests/preload/program.h"

namespace {

constexpr char kText[] = R"(
.version 8.0
.target sm_90
.address_size 64

.func add_for_all(.param .u64 to)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [to];
    red.relaxed.sys.global.add.u32 [%rd], 1;
    ret;
}

// The address is the second part of a struct.
.visible .entry for_all(.param .align 8 .b8 where[16])
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [where+8];
    { .param .u64 to; st.param.u64 [to], %rd; call add_for_all, (to); }
    ret;
}

.visible .entry for_device(.param .align 8 .b8 where[16])
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [where+8];
    red.global.add.u32 [%rd], 1;
    ret;
}
)";

struct Where {
    uint64_t number = 1;
    CUdeviceptr address = 0;
};

CUresult launch(CUfunction kernel, CUdeviceptr address) {
    Where where{1, address};
    void* parameters[] = {&where};
    return cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr);
}

}  // namespace

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction for_all = nullptr, for_device = nullptr;
    CUdeviceptr device = 0, managed = 0;
    void* pinned = nullptr;
    CHECK(cuModuleLoadData(&module, kText));
    CHECK(cuModuleGetFunction(&for_all, module, "for_all"));
    CHECK(cuModuleGetFunction(&for_device, module, "for_device"));
    CHECK(cuMemAlloc(&device, 4));
    CHECK(cuMemAllocHost(&pinned, 4));
    CHECK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));

    FAILS(launch(for_all, managed + 60), CUDA_ERROR_NOT_SUPPORTED);
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    Where where{1, managed};
    void* parameters[] = {&where};
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = for_all;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY =
        kernel.blockDimZ = 1;
    kernel.kernelParams = parameters;
    CHECK(cuGraphCreate(&graph, 0));
    FAILS(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), CUDA_ERROR_NOT_SUPPORTED);

    auto* words = reinterpret_cast<unsigned*>(managed);
    words[0] = 0;
    *static_cast<unsigned*>(pinned) = 0;
    CHECK(launch(for_device, managed));
    CHECK(launch(for_all, device));
    CHECK(launch(for_all, reinterpret_cast<CUdeviceptr>(pinned)));
    CHECK(cuCtxSynchronize());
    REQUIRE(words[0] == 4 * 32 && *static_cast<unsigned*>(pinned) == 4 * 32);
}
