// fenced KERNEL WHERE [copies]: launches the kernel with an address, waits for it, or copies memory behind
// it, and prints the error that it gets, which stays.
//
//   WHERE   own         64 bytes of its own
//           null, wild  no memory of anybody's
//           neighbour   what lies in the address range before its own as its own memory does here
//           beyond      own addresses without memory
//           odd         2 bytes on from its own
//           pinned      host memory of its own
//           freed       device memory that it has freed, more than the server keeps
//           unpinned    host memory that it has freed
//
// The kernels access 4 bytes at the address and add 1, if they get that far; 64 threads, of 4 blocks, do it
// after one another in no order. Where it is well it prints the sum, too.
#include <cstring>
#include <string>

#include "tests/preload/program.h"

namespace {

constexpr char kKernels[] = R"(
.version 8.0
.target sm_90
.address_size 64

.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.extern .func (.param .b64 result) malloc (.param .b64 bytes);
.global .align 4 .u32 counter = 41;
.shared .align 16 .b8 tile[64];

.visible .entry load(.param .u64 address)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    ld.global.u32 %r0, [%rd];
    red.global.add.u32 [%rd], 1;
    ret;
}

.visible .entry store(.param .u64 address)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    st.global.u32 [%rd], 1;
    ret;
}

.visible .entry before(.param .u64 address)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    red.global.add.u32 [%rd], 1;
    st.global.u32 [%rd+-4096], 1;
    ret;
}

.visible .entry atomic(.param .u64 address)
{
    .reg .b32 %r;
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    atom.global.add.u32 %r, [%rd], 1;
    ret;
}

.visible .entry vector(.param .u64 address)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd];
    red.global.add.u32 [%rd+12], 1;
    ret;
}

.visible .entry generic(.param .u64 address)
{
    .reg .b32 %r;
    .reg .b64 %rd<2>;
    .reg .pred %p;
    .local .align 8 .b8 mine[8];
    mov.u32 %r, tile;
    cvt.u64.u32 %rd1, %r;
    cvta.shared.u64 %rd1, %rd1;
    st.u32 [%rd1+4], %r;
    mov.u64 %rd1, mine;
    cvta.local.u64 %rd1, %rd1;
    st.u32 [%rd1], %r;
    ld.param.u64 %rd0, [address];
    ld.u32 %r, [%rd0];
    red.add.u32 [%rd0], 1;
    ret;
}

.visible .entry copy(.param .u64 address)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    mov.u32 %r0, tile;
    cp.async.ca.shared.global [%r0], [%rd], 4;
    cp.async.wait_all;
    red.global.add.u32 [%rd], 1;
    ret;
}

// Nothing is copied where the address is nothing's.
.visible .entry no_copy(.param .u64 address)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [address];
    mov.u32 %r0, tile;
    mov.u32 %r1, 0;
    mov.u64 %rd1, 64;
    cp.async.ca.shared.global [%r0], [%rd1], 4, %r1;
    cp.async.wait_all;
    red.global.add.u32 [%rd0], 1;
    ret;
}

.visible .entry shared_beyond(.param .u64 address)
{
    .reg .b32 %r<2>;
    mov.u32 %r0, tile;
    st.shared.u32 [%r0+1048576], %r0;
    ret;
}

.visible .entry generic_beyond(.param .u64 address)
{
    .reg .b32 %r;
    .reg .b64 %rd;
    mov.u32 %r, tile;
    cvt.u64.u32 %rd, %r;
    cvta.shared.u64 %rd, %rd;
    st.u32 [%rd+1048576], %r;
    ret;
}

.visible .entry guarded(.param .u64 address)
{
    .reg .b32 %r;
    .reg .b64 %rd<2>;
    .reg .pred %p;
    ld.param.u64 %rd0, [address];
    mov.u64 %rd1, 64;
    setp.eq.s64 %p, %rd0, 0;
    @%p ld.global.u32 %r, [%rd1];
    red.global.add.u32 [%rd0], 1;
    ret;
}

.func inner(.param .b64 address)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    red.global.add.u32 [%rd], 1;
    ret;
}

.visible .entry in_function(.param .u64 address)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    call inner, (%rd);
    ret;
}

// One thread goes wrong; the others stand at a barrier.
.visible .entry barrier(.param .u64 address)
{
    .reg .b32 %r;
    .reg .b64 %rd;
    .reg .pred %p;
    ld.param.u64 %rd, [address];
    mov.u32 %r, %tid.x;
    setp.ne.s32 %p, %r, 33;
    @%p bra others;
    red.global.add.u32 [%rd], 1;
others:
    bar.sync 0;
    bar.sync 0;
    ret;
}

// One thread goes wrong; the others wait for what it would write.
.visible .entry spins(.param .u64 address)
{
    .reg .b32 %r;
    .reg .b64 %rd<2>;
    .reg .pred %p;
    ld.param.u64 %rd0, [address];
    mov.u64 %rd1, counter;
    mov.u32 %r, %tid.x;
    setp.ne.s32 %p, %r, 33;
    @%p bra again;
    red.global.add.u32 [%rd0], 1;
    st.volatile.global.u32 [%rd1], 42;
again:
    ld.volatile.global.u32 %r, [%rd1];
    setp.ne.s32 %p, %r, 42;
    @%p bra again;
    ret;
}

.visible .entry variable(.param .u64 address)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [address];
    mov.u64 %rd1, counter;
    ld.global.u32 %r0, [%rd1];
    ld.global.u32 %r1, [counter];
    sub.s32 %r0, %r0, %r1;
    add.s32 %r0, %r0, 1;
    red.global.add.u32 [%rd0], %r0;
    ret;
}

.visible .entry traps(.param .u64 address)
{
    trap;
}

.visible .entry breaks(.param .u64 address)
{
    brkpt;
    ret;
}

.visible .entry asserts(.param .u64 address)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [address];
    {
        .param .b64 m;
        .param .b32 l;
        st.param.b64 [m], %rd;
        st.param.b32 [l], 7;
        call.uni __assertfail, (m, m, l, m, m);
    }
    ret;
}

// Cannot be fenced.
.visible .entry mallocs(.param .u64 address)
{
    .reg .b64 %rd;
    {
        .param .b64 n;
        .param .b64 r;
        st.param.b64 [n], 8;
        call.uni (r), malloc, (n);
        ld.param.b64 %rd, [r];
    }
    ret;
}
)";

CUdeviceptr address_of(const std::string& where, CUdeviceptr own) {
    constexpr uint64_t kRange = 512ull << 30, kBeyond = 64ull << 20;
    if (where == "null") return 0;
    if (where == "wild") return 0x1234560;
    if (where == "neighbour") return own - kRange;
    if (where == "beyond") return own + kBeyond;
    if (where == "odd") return own + 2;
    if (where == "freed") {
        CUdeviceptr memory = 0;
        CHECK(cuMemAlloc(&memory, kBeyond * 5));
        CHECK(cuMemFree(memory));
        return memory;
    }
    if (where != "pinned" && where != "unpinned") return own;
    void* host = nullptr;
    CHECK(cuMemAllocHost(&host, 64));
    if (where == "unpinned") CHECK(cuMemFreeHost(host));
    if (where == "unpinned") return reinterpret_cast<CUdeviceptr>(host);
    std::memset(host, 0, 64);
    return reinterpret_cast<CUdeviceptr>(host);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string where = arguments[2];
    const bool copies = count > 3;  // in place of waiting
    preload::start();
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUdeviceptr own = 0;
    CHECK(cuMemAlloc(&own, 64));
    CHECK(cuMemsetD8(own, 0, 64));
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&function, module, arguments[1]));
    CUdeviceptr address = address_of(where, own);
    void* parameters[] = {&address};
    CUresult status = cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr);
    uint32_t words[16] = {}, sum = 0;
    if (status == CUDA_SUCCESS) status = copies ? cuMemcpyDtoH(words, own, sizeof words) : cuCtxSynchronize();
    std::printf("%s\n", preload::name_of(status));
    if (status == CUDA_SUCCESS) {
        CHECK(cuMemcpyDtoH(words, where == "pinned" ? address : own, sizeof words));
        for (uint32_t word : words) sum += word;
        std::printf("%u\n", sum);
        return 0;
    }
    CUdeviceptr memory = 0;
    const CUresult after = cuMemAlloc(&memory, 64);
    REQUIRE(after == (status == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : status));  // for good
}
