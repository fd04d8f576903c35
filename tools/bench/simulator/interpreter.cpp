// bench_interpreter: thread-instructions a second of the interpreter by itself, on one core.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "tests/ptx/exec/bench_device.h"

using namespace smt::test;

namespace {

const char* kModule = R"(
.version 8.0
.target sm_90
.address_size 64
.shared .align 16 .b8 tile[8192];
.visible .entry arithmetic(.param .u64 data, .param .u32 n)
{
    .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p; .reg .b64 %rd<4>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    mov.u32 %r3, %tid.x;
    cvt.rn.f32.u32 %f1, %r3;
    mov.f32 %f2, 0f3F800001;
L:
    fma.rn.f32 %f1, %f1, %f2, %f2;
    mul.f32 %f3, %f1, %f2;
    add.f32 %f1, %f3, %f2;
    mad.lo.u32 %r3, %r3, 1664525, 1013904223;
    xor.b32 %r4, %r3, %r2;
    shl.b32 %r5, %r4, 3;
    add.u32 %r3, %r3, %r5;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, %r1;
    @%p bra L;
    ret;
}
.visible .entry stream(.param .u64 data, .param .u32 n)
{
    .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, 0;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %rd2;
L:
    ld.global.f32 %f1, [%rd1];
    ld.global.f32 %f2, [%rd1+1024];
    fma.rn.f32 %f1, %f1, %f2, %f2;
    st.global.f32 [%rd1], %f1;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p, %r3, %r1;
    @%p bra L;
    ret;
}
.visible .entry shared(.param .u64 data, .param .u32 n)
{
    .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p; .reg .b64 %rd<9>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, 0;
    shl.b32 %r4, %r2, 2;
    mov.u32 %r5, tile;
    add.u32 %r4, %r5, %r4;
L:
    ld.shared.f32 %f1, [%r4];
    ld.shared.f32 %f2, [%r5];
    fma.rn.f32 %f1, %f1, %f2, %f2;
    st.shared.f32 [%r4], %f1;
    bar.sync 0;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p, %r3, %r1;
    @%p bra L;
    ret;
}
.visible .entry divergent(.param .u64 data, .param .u32 n)
{
    .reg .b32 %r<9>; .reg .pred %p<4>; .reg .b64 %rd<4>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    mov.u32 %r3, %tid.x;
L:
    and.b32 %r4, %r3, 1;
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra E;
    mad.lo.u32 %r3, %r3, 3, 1;
    add.u32 %r5, %r5, %r3;
    bra J;
E:
    shr.u32 %r3, %r3, 1;
    xor.b32 %r5, %r5, %r3;
J:
    add.u32 %r3, %r3, %r2;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, %r1;
    @%p2 bra L;
    ret;
}
)";

double measure(const char* name) {
    BenchDevice device;
    device.step_limit = ~0ull;
    if (!device.load(kModule)) {
        std::fprintf(stderr, "%s\n", device.error.c_str());
        return 0;
    }
    const uint64_t data = device.copy_in(std::vector<float>(4096, 1.0f));
    const std::clock_t begin = std::clock();  // of the processor: others may run here, too
    double seconds = 0;
    for (uint32_t rounds = 2000; seconds < 0.5; rounds *= 2) {
        if (!device.launch(name, {1}, {256}, 0, data, rounds))
            std::fprintf(stderr, "%s\n", device.error.c_str());
        seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    }
    const double rate = static_cast<double>(device.lanes) / seconds / 1e6;
    std::printf("%-12s %8.0f million thread-instructions/s, %5.1f ns a warp-instruction\n", name, rate,
                seconds * 1e9 / static_cast<double>(device.steps));
    return rate;
}

}  // namespace

int main() {
    double least = 1e9;
    for (const char* name : {"arithmetic", "stream", "shared", "divergent"})
        least = std::min(least, measure(name));
    return least > 0 ? 0 : 1;
}
