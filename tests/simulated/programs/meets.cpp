// meets BLOCKS LAUNCHES: blocks that all run at once meet at barriers over the grid, made of loads: each
// waits for every other one, later ones too.
#include <vector>

#include "tests/preload/program.h"

namespace {

constexpr char kText[] = R"(
.version 8.0
.target sm_90
.address_size 64

// Three times: sums[block] += block + 1, arrived[block] += 1, and wait for all others to have arrived.
.visible .entry meet(.param .u64 arrived, .param .u64 sums)
{
    .reg .pred %p, %q;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p, %r2, 0;
    ld.param.u64 %rd0, [arrived];
    ld.param.u64 %rd1, [sums];
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd0, %rd2;
    add.s64 %rd4, %rd1, %rd2;
    mov.u32 %r3, 0;
round:
    add.s32 %r3, %r3, 1;
    bar.sync 0;
    @%p bra met;
    add.s32 %r4, %r0, 1;
    red.global.add.u32 [%rd4], %r4;
    st.volatile.global.u32 [%rd3], %r3;
    mov.u32 %r5, 0;
each:
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd5, %rd0, %rd5;
again:
    ld.volatile.global.u32 %r6, [%rd5];
    setp.lt.u32 %q, %r6, %r3;
    @%q bra again;
    add.s32 %r5, %r5, 1;
    setp.lt.u32 %q, %r5, %r1;
    @%q bra each;
met:
    bar.sync 0;
    setp.lt.u32 %q, %r3, 3;
    @%q bra round;
    ret;
}
)";

}  // namespace

int main(int, char** arguments) {
    const auto blocks = static_cast<unsigned>(std::strtoul(arguments[1], nullptr, 10));
    const auto launches = static_cast<unsigned>(std::strtoul(arguments[2], nullptr, 10));
    preload::start();
    CUmodule module = nullptr;
    CUfunction meet = nullptr;
    CHECK(cuModuleLoadData(&module, kText));
    CHECK(cuModuleGetFunction(&meet, module, "meet"));
    CUdeviceptr arrived = 0, sums = 0;
    CHECK(cuMemAlloc(&arrived, blocks * sizeof(unsigned)));
    CHECK(cuMemAlloc(&sums, blocks * sizeof(unsigned)));
    CHECK(cuMemsetD32(sums, 0, blocks));
    void* parameters[] = {&arrived, &sums};
    for (unsigned i = 0; i < launches; ++i) {
        CHECK(cuMemsetD32(arrived, 0, blocks));
        CHECK(cuLaunchKernel(meet, blocks, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
    }
    std::vector<unsigned> found(blocks);
    CHECK(cuMemcpyDtoH(found.data(), sums, blocks * sizeof(unsigned)));
    for (unsigned i = 0; i < blocks; ++i) REQUIRE(found[i] == 3 * launches * (i + 1));
}
