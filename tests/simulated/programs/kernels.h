// The kernels of the programs in this folder, as PTX text: add, scale, spin, say, and some that misbehave.
#pragma once

constexpr char kKernels[] = R"(
.version 8.0
.target sm_90
.address_size 64

.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 words[17] = {98, 108, 111, 99, 107, 32, 37, 100, 32, 115, 97, 121, 115, 32, 37, 100, 0};
.global .align 4 .u32 counter = 7;

// sum[i] = a[i] + b[i]
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [n];
    setp.ge.u32 %p, %r3, %r4;
    @%p bra done;
    ld.param.u64 %rd0, [a];
    ld.param.u64 %rd1, [b];
    ld.param.u64 %rd2, [sum];
    mul.wide.u32 %rd3, %r3, 4;
    add.s64 %rd0, %rd0, %rd3;
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
    ld.global.u32 %r5, [%rd0];
    ld.global.u32 %r6, [%rd1];
    add.s32 %r7, %r5, %r6;
    st.global.u32 [%rd2], %r7;
done:
    ret;
}

// Every thread multiplies and adds `rounds` times and counts itself at *to.
.visible .entry spin(.param .u32 rounds, .param .u64 to)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .f32 %f<3>;
    .reg .b64 %rd;
    ld.param.u32 %r0, [rounds];
    mov.f32 %f0, 0f3F800000;
    mov.f32 %f1, 0f3F000000;
again:
    fma.rn.f32 %f0, %f0, %f1, %f1;
    sub.s32 %r0, %r0, 1;
    setp.gt.s32 %p, %r0, 0;
    @%p bra again;
    ld.param.u64 %rd, [to];
    mov.u32 %r1, 1;
    setp.eq.f32 %p, %f0, 0f00000000;
    @%p mov.u32 %r1, 2;
    red.global.add.u32 [%rd], %r1;
    ret;
}

// Each block says a line.
.visible .entry say(.param .u32 number)
{
    .local .align 8 .b8 arguments[8];
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    mov.u32 %r0, %ctaid.x;
    ld.param.u32 %r1, [number];
    mov.u64 %rd0, arguments;
    st.local.u32 [%rd0], %r0;
    st.local.u32 [%rd0+4], %r1;
    cvta.local.u64 %rd0, %rd0;
    mov.u64 %rd1, words;
    cvta.global.u64 %rd1, %rd1;
    {
        .param .b64 first;
        .param .b64 second;
        .param .b32 result;
        st.param.b64 [first], %rd1;
        st.param.b64 [second], %rd0;
        call.uni (result), vprintf, (first, second);
        ld.param.b32 %r2, [result];
    }
    ret;
}

// Writes where nothing is.
.visible .entry wild(.param .u64 address)
{
    .reg .b32 %r;
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    mov.u32 %r, 1;
    st.global.u32 [%rd], %r;
    ret;
}

.visible .entry traps()
{
    trap;
}

.visible .entry endless()
{
again:
    bra again;
}

// One warp waits for the other at a barrier that it never reaches.
.visible .entry stuck()
{
    .reg .pred %p;
    .reg .b32 %r;
    mov.u32 %r, %tid.x;
    setp.ge.u32 %p, %r, 32;
    @%p bra second;
    bar.sync 1, 96;
second:
    ret;
}

.visible .entry tick()
{
    .reg .b32 %r;
    .reg .b64 %rd;
    mov.u64 %rd, counter;
    mov.u32 %r, 1;
    red.global.add.u32 [%rd], %r;
    ret;
}
)";
