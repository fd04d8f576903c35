// spare [fills]: images as a program finds them at its start, whatever earlier programs have done to the
// same ones. Of the first it sets an attribute; the kernel of the second has a variable that it changes; a
// variable of the third is changed by a copy; to the fourth nothing is done. With `fills` device memory is
// used up first; else there is a fifth, with a large variable that nothing uses.
#include <cstring>

#include "tests/preload/program.h"

namespace {

constexpr int kShared = 64 << 10;
constexpr char kPlain[] = R"(
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 room[];
// *to = what was stored at the end of `bytes` of shared memory
.visible .entry plain(.param .u64 to, .param .u32 bytes)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [to];
    ld.param.u32 %r0, [bytes];
    mov.u32 %r1, room;
    add.u32 %r1, %r1, %r0;
    st.shared.u32 [%r1+-4], %r0;
    ld.shared.u32 %r2, [%r1+-4];
    st.global.u32 [%rd], %r2;
    ret;
}
)";
constexpr char kUsed[] = R"(
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 7;
// *to = counter++
.visible .entry used(.param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [to];
    mov.u64 %rd1, counter;
    ld.global.u32 %r0, [%rd1];
    st.global.u32 [%rd0], %r0;
    add.u32 %r0, %r0, 1;
    st.global.u32 [%rd1], %r0;
    ret;
}
)";
constexpr char kGiven[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .entry given(.param .u64 to)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [to];
    st.global.u32 [%rd], 5;
    ret;
}
)";

constexpr char kLarge[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .b8 unused[17825792];
.visible .entry large(.param .u64 to)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [to];
    st.global.u32 [%rd], 7;
    ret;
}
)";
constexpr char kOnly[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry only(.param .u64 to)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [to];
    st.global.u32 [%rd], 6;
    ret;
}
)";

CUfunction kernel_of(const char* image, const char* name, CUmodule* module) {
    CUfunction kernel = nullptr;
    CHECK(cuModuleLoadData(module, image));
    CHECK(cuModuleGetFunction(&kernel, *module, name));
    return kernel;
}

unsigned run(CUfunction kernel, unsigned shared) {
    CUdeviceptr to = 0;
    unsigned result = 0;
    CHECK(cuMemAlloc(&to, 4));
    void* parameters[] = {&to, &shared};
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, shared, nullptr, parameters, nullptr));
    CHECK(cuMemcpyDtoH(&result, to, 4));
    CHECK(cuMemFree(to));
    return result;
}

// All of device memory is asked for, and what this program needs is free then.
void fill() {
    CUdeviceptr each = 0, last = 0;
    for (size_t bytes = 64u << 20; bytes >= 2u << 20;)
        if (cuMemAlloc(&each, bytes) == CUDA_SUCCESS)
            last = each;
        else
            bytes /= 2;
    CHECK(cuMemFree(last));
}

}  // namespace

int main(int count, char** arguments) {
    constexpr CUfunction_attribute kLimit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    preload::start();
    const bool fills = count > 1 && std::strcmp(arguments[1], "fills") == 0;
    if (fills) fill();
    CUmodule module = nullptr;
    const CUfunction plain = kernel_of(kPlain, "plain", &module);
    int limit = 0;
    CHECK(cuFuncGetAttribute(&limit, kLimit, plain));
    REQUIRE(limit < kShared);
    CHECK(cuFuncSetAttribute(plain, kLimit, kShared));
    REQUIRE(run(plain, kShared) == kShared);

    const CUfunction used = kernel_of(kUsed, "used", &module);
    REQUIRE(run(used, 0) == 7);

    const CUfunction given = kernel_of(kGiven, "given", &module);
    CUdeviceptr counter = 0;
    size_t bytes = 0;
    unsigned value = 0;
    CHECK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
    CHECK(cuMemcpyDtoH(&value, counter, 4));
    REQUIRE(value == 7);
    CHECK(cuMemsetD32(counter, 8, 1));
    REQUIRE(run(given, 0) == 5);

    REQUIRE(run(kernel_of(kOnly, "only", &module), 0) == 6);
    if (!fills) REQUIRE(run(kernel_of(kLarge, "large", &module), 0) == 7);
}
