// A program as a container has it: of the C library alone, so that it can be compiled for any. With CUDA's
// runtime it doubles numbers by a kernel of the driver API, prints what a right result is, and ends when its
// input does.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>

namespace {

constexpr int kNumbers = 1000, kThreads = 128;
constexpr char kDouble[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 numbers, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [count];
    setp.ge.u32 %p, %r3, %r4;
    @%p ret;
    ld.param.u64 %rd0, [numbers];
    mul.wide.u32 %rd1, %r3, 4;
    add.s64 %rd0, %rd0, %rd1;
    ld.global.u32 %r4, [%rd0];
    add.s32 %r4, %r4, %r4;
    st.global.u32 [%rd0], %r4;
    ret;
}
)";

void expect(int result, const char* call) {
    if (result == 0) return;
    printf("%s: error %d\n", call, result);
    exit(1);
}

#define CHECK(call) expect(static_cast<int>(call), #call)

}  // namespace

int main() {
    int numbers[kNumbers];
    for (int i = 0; i < kNumbers; ++i) numbers[i] = i;
    void* device = nullptr;
    CHECK(cudaMalloc(&device, sizeof numbers));
    CHECK(cudaMemcpy(device, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    CUmodule module;
    CUfunction twice;
    CHECK(cuModuleLoadData(&module, kDouble));
    CHECK(cuModuleGetFunction(&twice, module, "twice"));
    unsigned count = kNumbers;
    void* arguments[] = {&device, &count};
    CHECK(cuLaunchKernel(twice, (kNumbers + kThreads - 1) / kThreads, 1, 1, kThreads, 1, 1, 0, nullptr,
                         arguments, nullptr));
    CHECK(cudaMemcpy(numbers, device, sizeof numbers, cudaMemcpyDeviceToHost));
    int right = 0;
    for (int i = 0; i < kNumbers; ++i) right += numbers[i] == 2 * i;
    printf("glibc %s: %d of %d are right\n", gnu_get_libc_version(), right, kNumbers);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return right == kNumbers ? 0 : 1;
}
