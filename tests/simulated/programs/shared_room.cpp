// Launches that use all dynamic shared memory which their kernel may have: by default, and where the program
// asked for as much as the device has. A form with shared memory of its own has less room.
#include "tests/preload/program.h"

namespace {

// Block 0 stores the size of the block's dynamic shared memory, by way of its last word.
constexpr char kText[] = R"(
.version 8.0
.target sm_90
.address_size 64

.extern .shared .align 4 .b8 room[];

.visible .entry size(.param .u64 to)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd;
    mov.u32 %r0, %ctaid.x;
    setp.ne.u32 %p, %r0, 0;
    @%p bra done;
    mov.u32 %r1, room;
    mov.u32 %r2, %dynamic_smem_size;
    add.u32 %r1, %r1, %r2;
    st.shared.u32 [%r1+-4], %r2;
    ld.shared.u32 %r3, [%r1+-4];
    ld.param.u64 %rd, [to];
    st.global.u32 [%rd], %r3;
done:
    ret;
}
)";

constexpr unsigned kBlocks = 64;

CUresult launch(CUfunction kernel, CUdeviceptr to, int bytes) {
    void* parameters[] = {&to};
    return cuLaunchKernel(kernel, kBlocks, 1, 1, 1, 1, 1, static_cast<unsigned>(bytes), nullptr, parameters,
                          nullptr);
}

void runs(CUfunction kernel, CUdeviceptr to, int bytes) {
    int seen = 0;
    CHECK(cuMemsetD32(to, 0, 1));
    CHECK(launch(kernel, to, bytes));
    CHECK(cuMemcpyDtoH(&seen, to, sizeof seen));
    REQUIRE(seen == bytes);
}

}  // namespace

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CUdeviceptr to = 0;
    int usual = 0, most = 0;
    CHECK(cuMemAlloc(&to, 4));
    CHECK(cuModuleLoadData(&module, kText));
    CHECK(cuModuleGetFunction(&kernel, module, "size"));
    CHECK(cuFuncGetAttribute(&usual, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel));
    runs(kernel, to, usual);
    FAILS(launch(kernel, to, usual + 4), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    runs(kernel, to, usual + 4);
    runs(kernel, to, most);
    CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, usual));
    FAILS(launch(kernel, to, usual + 4), CUDA_ERROR_INVALID_VALUE);
}
