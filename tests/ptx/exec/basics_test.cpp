// Loading, linking and launching.
#include <catch2/catch.hpp>

#include "tests/ptx/exec/bench_device.h"

using namespace smt::test;

namespace {

const char* kVectorAdd = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<11>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    ld.param.u32 %r2, [n];
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r4, %r3, %r5;
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra $L__end;
    cvta.to.global.u64 %rd4, %rd1;
    mul.wide.s32 %rd5, %r1, 4;
    add.s64 %rd6, %rd4, %rd5;
    cvta.to.global.u64 %rd7, %rd2;
    add.s64 %rd8, %rd7, %rd5;
    ld.global.f32 %f1, [%rd8];
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f2, %f1;
    cvta.to.global.u64 %rd9, %rd3;
    add.s64 %rd10, %rd9, %rd5;
    st.global.f32 [%rd10], %f3;
$L__end:
    ret;
}
)";

}  // namespace

TEST_CASE("a vector addition with a ragged end") {
    BenchDevice device;
    REQUIRE(device.load(kVectorAdd));
    std::vector<float> a(1000), b(1000);
    for (size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<float>(i);
        b[i] = 0.5f * static_cast<float>(i);
    }
    const uint64_t da = device.copy_in(a);
    const uint64_t db = device.copy_in(b);
    const uint64_t dc = device.copy_in(std::vector<float>(1000, -1));
    const bool ran = device.launch("add", {8}, {128}, 0, da, db, dc, 1000);
    INFO(device.error);
    REQUIRE(ran);
    const auto c = device.copy_out<float>(dc, 1000);
    for (size_t i = 0; i < c.size(); ++i) REQUIRE(c[i] == 1.5f * static_cast<float>(i));

    const auto* kernel = device.kernel("add");
    REQUIRE(kernel->parameter_bytes == 28);
    REQUIRE(kernel->parameters.size() == 4);
    REQUIRE(kernel->registers == 16);
}
