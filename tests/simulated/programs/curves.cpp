// curves ROUNDS BLOCKS: launches one kernel so often, on so many blocks of 512 threads, one after the other,
// each waited for. The host computes the same and compares.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/preload/program.h"

namespace {

// x = 3 x + 1, some times over.
constexpr char kTurn[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry turn(.param .u64 to, .param .u32 times)
{
    .reg .pred %p;
    .reg .b32 %r<7>;
    .reg .b64 %rd<3>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r4, [times];
    mul.wide.u32 %rd1, %r3, 4;
    add.s64 %rd0, %rd0, %rd1;
    ld.global.u32 %r5, [%rd0];
again:
    mad.lo.u32 %r5, %r5, 3, 1;
    sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p, %r4, 0;
    @%p bra again;
    st.global.u32 [%rd0], %r5;
    ret;
}
)";
constexpr unsigned kThreads = 512, kTimes = 40;

}  // namespace

int main(int count, char** arguments) {
    REQUIRE(count == 3);
    const int rounds = std::atoi(arguments[1]);
    const unsigned blocks = static_cast<unsigned>(std::atoi(arguments[2]));
    preload::start();
    CUmodule module = nullptr;
    CUfunction turn = nullptr;
    CUdeviceptr memory = 0;
    CHECK(cuModuleLoadData(&module, kTurn));
    CHECK(cuModuleGetFunction(&turn, module, "turn"));
    CHECK(cuMemAlloc(&memory, size_t{4} * blocks * kThreads));
    CHECK(cuMemsetD32(memory, 1, size_t{blocks} * kThreads));
    uint32_t expected = 1;
    for (int round = 0; round < rounds; ++round) {
        unsigned times = kTimes;
        void* parameters[] = {&memory, &times};
        CHECK(cuLaunchKernel(turn, blocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters, nullptr));
        CHECK(cuCtxSynchronize());
        for (unsigned i = 0; i < kTimes; ++i) expected = expected * 3 + 1;
    }
    std::vector<uint32_t> found(size_t{blocks} * kThreads);
    CHECK(cuMemcpyDtoH(found.data(), memory, 4 * found.size()));
    for (const uint32_t each : found) REQUIRE(each == expected);
    std::printf("%d launches\n", rounds);
}
