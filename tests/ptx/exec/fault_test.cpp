// Every bad access is caught, and told with kernel, block, thread and PTX line.
#include <catch2/catch.hpp>

#include "tests/ptx/exec/bench_device.h"

using namespace smt::test;
using Kind = sim::Fault::Kind;

namespace {

// A kernel of one body, with two 64-bit parameters in %a and %b. The body begins on line 12.
std::string text_of(const std::string& body, const std::string& module = "") {
    return ".version 8.0\n.target sm_90\n.address_size 64\n" + module +
           "\n.visible .entry test(.param .u64 pa, .param .u64 pb)\n{\n"
           ".reg .b64 %a, %b, %rd<9>; .reg .b32 %r<9>; .reg .b16 %h<9>; .reg .pred %p<9>; .reg .f32 %f<9>;\n"
           "mov.u32 %r0, %tid.x;\nld.param.u64 %a, [pa];\nld.param.u64 %b, [pb];\n\n" +
           body + "\nret;\n}\n";
}

struct Faulty : BenchDevice {
    // Runs 64 threads in each of 2 blocks and expects the fault of that kind.
    const sim::Fault& expect(Kind kind, const std::string& body, uint64_t a = 0, uint64_t b = 0,
                             uint32_t shared = 0, const std::string& module = "") {
        const bool loaded = load(text_of(body, module));
        INFO(error);
        REQUIRE(loaded);
        REQUIRE_FALSE(launch("test", {2}, {64}, shared, a, b));
        REQUIRE(fault != nullptr);
        INFO(fault->message);
        REQUIRE(fault->kind == kind);
        REQUIRE(fault->kernel == "test");
        return *fault;
    }
};

}  // namespace

TEST_CASE("an access out of bounds tells where") {
    Faulty device;
    const uint64_t buffer = device.memory.obtain(256);
    const auto& fault = device.expect(
        Kind::kOutOfBounds, "mul.wide.u32 %rd0, %r0, 8;\nadd.u64 %rd0, %rd0, %a;\nst.global.u32 [%rd0], %r0;",
        buffer);
    REQUIRE(fault.thread == sim::Dim3{32, 0, 0});
    REQUIRE(fault.cta == sim::Dim3{0, 0, 0});
    REQUIRE(fault.address == buffer + 256);
    REQUIRE(fault.bytes == 4);
    REQUIRE(fault.space == sim::Space::kGlobal);
    REQUIRE(fault.line == 14);
    REQUIRE(fault.result == 700);
    REQUIRE(fault.message.find("in kernel test, block (0,0,0), thread (32,0,0), PTX line 14") !=
            std::string::npos);
}

TEST_CASE("null pointers, ends, and gaps between allocations") {
    Faulty device;
    device.expect(Kind::kOutOfBounds, "ld.global.u32 %r1, [%a];");
    device.expect(Kind::kOutOfBounds, "ld.u32 %r1, [%a+4];");
    const uint64_t buffer = device.memory.obtain(100);  // ends within a word
    device.expect(Kind::kOutOfBounds, "ld.global.u64 %rd1, [%a+96];", buffer);
    REQUIRE(device.load(text_of("ld.global.u32 %r1, [%a+96];")));
    REQUIRE(device.launch("test", {1}, {32}, 0, buffer, buffer));
    device.expect(Kind::kOutOfBounds, "atom.global.add.u32 %r1, [%a+100], 1;", buffer);
    device.expect(Kind::kOutOfBounds, "st.global.v4.u32 [%a+96], {%r0, %r0, %r0, %r0};", buffer);
}

TEST_CASE("one allocation that was told in pieces is one") {
    Faulty device;
    const uint64_t buffer = device.memory.obtain(256);
    device.memory.freed(buffer, 256);
    device.memory.allocated(buffer, 20);
    device.memory.allocated(buffer + 20, 44);
    REQUIRE(device.load(text_of("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a+16];")));
    REQUIRE(device.launch("test", {1}, {32}, 0, buffer, buffer));
    device.expect(Kind::kFreed, "ld.global.u32 %r1, [%a+64];", buffer);
}

TEST_CASE("freed memory") {
    Faulty device;
    const uint64_t buffer = device.memory.obtain(256);
    device.memory.give_back(buffer);
    const auto& fault = device.expect(Kind::kFreed, "ld.global.f32 %f1, [%a];", buffer);
    REQUIRE(fault.message.find("freed") != std::string::npos);
    REQUIRE(fault.result == 700);
}

TEST_CASE("misaligned accesses") {
    Faulty device;
    const uint64_t buffer = device.memory.obtain(256);
    REQUIRE(device.expect(Kind::kMisaligned, "ld.global.u32 %r1, [%a+2];", buffer).result == 716);
    device.expect(Kind::kMisaligned, "ld.global.v2.u32 {%r1, %r2}, [%a+4];", buffer);
    device.expect(Kind::kMisaligned, "st.global.u64 [%a+4], %a;", buffer);
    device.expect(Kind::kMisaligned, "mov.u32 %r1, 2;\nld.shared.u32 %r2, [%r1];", 0, 0, 64);
    device.expect(Kind::kMisaligned,
                  ".local .align 8 .b8 depot[16];\nmov.u64 %rd1, depot;\nld.local.u64 %rd2, [%rd1+4];");
}

TEST_CASE("shared and local memory have ends") {
    Faulty device;
    // Behind the system's part, of 1024 bytes.
    const auto& fault = device.expect(Kind::kOutOfBounds,
                                      "mul.lo.u32 %r1, %r0, 4;\nst.shared.u32 [%r1+1024], %r0;", 0, 0, 128);
    REQUIRE(fault.thread == sim::Dim3{32, 0, 0});
    REQUIRE(fault.space == sim::Space::kShared);
    device.expect(Kind::kOutOfBounds, "mov.u32 %r1, 0;\nld.shared.u32 %r2, [%r1];");
    device.expect(Kind::kOutOfBounds, "ld.shared.u32 %r2, [1020];", 0, 0, 128);
    device.expect(Kind::kOutOfBounds,
                  ".local .b8 depot[16];\nmov.u64 %rd1, depot;\nld.local.u32 %r1, [%rd1+16];");
    // The same through generic addresses.
    device.expect(Kind::kOutOfBounds, "mov.u64 %rd1, 1152;\ncvta.shared.u64 %rd1, %rd1;\nld.u32 %r1, [%rd1];",
                  0, 0, 128);
    device.expect(
        Kind::kOutOfBounds,
        ".local .b8 depot[16];\nmov.u64 %rd1, depot;\ncvta.local.u64 %rd1, %rd1;\nst.u32 [%rd1+32], %r0;");
    device.expect(Kind::kOutOfBounds, "ld.param.u32 %r1, [pa+16];");
    device.expect(Kind::kOutOfBounds, "mov.u64 %rd1, table;\nld.const.u32 %r1, [%rd1+64];", 0, 0, 0,
                  ".const .u32 table[4] = {1, 2, 3, 4};");
}

TEST_CASE("bad calls and branches") {
    Faulty device;
    const std::string call = "P: .callprototype _ ();\ncall %a, (), P;";
    REQUIRE(device.expect(Kind::kBadCall, call, 0x1000).result == 718);
    device.expect(Kind::kBadBranch, "T: .branchtargets L0, L1;\nbrx.idx %r0, T;\nL0:\nL1:\nmov.u32 %r1, 1;");
}

TEST_CASE("a recursion without end") {
    Faulty device;
    const auto& fault =
        device.expect(Kind::kStackOverflow, "call (%r1), deeper, (%r0);", 0, 0, 0,
                      ".func (.reg .u32 %r) deeper(.reg .u32 %a) { .local .b8 depot[1024]; .reg .b32 %x;\n"
                      "mov.u32 %x, depot; st.local.u32 [%x], %a; call (%r), deeper, (%a); ret; }");
    REQUIRE(fault.result == 719);
}

TEST_CASE("traps, breakpoints and barriers that cannot be") {
    Faulty device;
    device.expect(Kind::kTrap, "setp.eq.u32 %p1, %r0, 3;\n@%p1 trap;");
    REQUIRE(device.fault->thread == sim::Dim3{3, 0, 0});
    device.expect(Kind::kTrap, "brkpt;");
    device.expect(Kind::kBadBarrier, "bar.sync %r0;");  // thread 0: fine; the second warp asks for 32
    device.expect(Kind::kBadBarrier, "bar.sync 1, 33;");
}

TEST_CASE("a thread must be in the mask of its warp-wide operation") {
    Faulty device;
    const auto& fault =
        device.expect(Kind::kBadBarrier, "mov.u32 %r1, %lanemask_lt;\nvote.sync.ballot.b32 %r2, %p1, %r1;");
    REQUIRE(fault.result == 715);
    REQUIRE(fault.thread == sim::Dim3{0, 0, 0});
    device.expect(Kind::kBadBarrier, "shfl.sync.idx.b32 %r2, %r0, 0, 31, 0xfffffffe;");
    device.expect(Kind::kBadBarrier, "bar.warp.sync 0x7fffffff;");
    REQUIRE(device.fault->thread == sim::Dim3{31, 0, 0});
}

TEST_CASE("threads that wait for what never comes are a deadlock") {
    Faulty device;
    REQUIRE(device.load(text_of("setp.lt.u32 %p1, %r0, 32;\n@%p1 bar.sync 1, 64;")));
    REQUIRE_FALSE(device.launch("test", {1}, {64}, 0, uint64_t{0}, uint64_t{0}));
    REQUIRE(device.deadlock);
    REQUIRE(device.error == "deadlock at line 13 in test");
}

TEST_CASE("the heap") {
    Faulty device;
    const std::string module = ".extern .func free(.param .b64 p);";
    device.expect(Kind::kHeap, "{ .param .b64 x; st.param.b64 [x], %a; call free, (x); }", 0x1234, 0, 0,
                  module);
}
