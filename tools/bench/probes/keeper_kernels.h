// Kernels of keeper_takeover: fill and check words by their number and a seed, and two that fault.
#pragma once

constexpr char kKernels[] = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry fill(.param .u64 base, .param .u64 words, .param .u64 seed)
{
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<9>;
    ld.param.u64 %rd0, [base]; ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [seed];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %rd3, %r0, %r1; cvt.u64.u32 %rd4, %r2; add.u64 %rd3, %rd3, %rd4;
    mul.wide.u32 %rd5, %r3, %r1;
again:
    setp.ge.u64 %p, %rd3, %rd1;
    @%p ret;
    add.u64 %rd6, %rd3, %rd2; mul.lo.u64 %rd6, %rd6, 0x9E3779B97F4A7C15;
    shl.b64 %rd7, %rd3, 3; add.u64 %rd7, %rd7, %rd0;
    st.global.u64 [%rd7], %rd6;
    add.u64 %rd3, %rd3, %rd5;
    bra again;
}
.visible .entry check(.param .u64 base, .param .u64 words, .param .u64 seed, .param .u64 wrong)
{
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<11>;
    ld.param.u64 %rd0, [base]; ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [seed];
    ld.param.u64 %rd8, [wrong];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %rd3, %r0, %r1; cvt.u64.u32 %rd4, %r2; add.u64 %rd3, %rd3, %rd4;
    mul.wide.u32 %rd5, %r3, %r1;
again:
    setp.ge.u64 %p, %rd3, %rd1;
    @%p ret;
    add.u64 %rd6, %rd3, %rd2; mul.lo.u64 %rd6, %rd6, 0x9E3779B97F4A7C15;
    shl.b64 %rd7, %rd3, 3; add.u64 %rd7, %rd7, %rd0;
    ld.global.u64 %rd9, [%rd7];
    setp.eq.u64 %p, %rd9, %rd6;
    mov.u64 %rd10, 1;
    @!%p red.global.add.u64 [%rd8], %rd10;
    add.u64 %rd3, %rd3, %rd5;
    bra again;
}
.visible .entry illegal()
{
    .reg .b64 %rd<2>;
    mov.u64 %rd0, 0x40; mov.u64 %rd1, 1;
    st.global.u64 [%rd0], %rd1;
    ret;
}
.visible .entry traps()
{
    trap;
}
)";
