// Where threads part and meet again: results, and how many instructions a warp needs.
#include <catch2/catch.hpp>

#include "tests/ptx/exec/bench_device.h"

using namespace smt::test;

namespace {

std::string kernel(const std::string& body, const std::string& module = "") {
    return ".version 8.0\n.target sm_90\n.address_size 64\n" + module +
           ".visible .entry test(.param .u64 out)\n{\n.reg .b64 %out, %rd<9>; .reg .b32 %t, %v, %r<9>; .reg "
           ".pred %p<9>;\n"
           "mov.u32 %t, %tid.x;\nld.param.u64 %out, [out];\nmul.wide.u32 %rd0, %t, 4;\nadd.u64 %out, %out, "
           "%rd0;\nmov.u32 %v, 0;\n" +
           body + "\nst.global.u32 [%out], %v;\nret;\n}\n";
}

struct Divergent : BenchDevice {
    std::vector<uint32_t> run(const std::string& text, uint32_t threads = 32) {
        const bool loaded = load(text);
        INFO(error);
        REQUIRE(loaded);
        const uint64_t out = copy_in(std::vector<uint32_t>(threads, 99));
        const bool ran = launch("test", {1}, {threads}, 0, out);
        INFO(error);
        REQUIRE(ran);
        return copy_out<uint32_t>(out, threads);
    }
};

constexpr uint64_t kAround = 8;  // instructions of kernel() around the body, `ret` and the last one included

}  // namespace

TEST_CASE("the ways of a branch meet at its immediate post-dominator") {
    Divergent device;
    const auto values = device.run(
        kernel("setp.lt.u32 %p1, %t, 10;\n@%p1 bra A;\nadd.u32 %v, %v, 1;\nadd.u32 %v, %v, 1;\nbra B;\n"
               "A:\nadd.u32 %v, %v, 5;\nB:\nactivemask.b32 %r1;\npopc.b32 %r1, %r1;\nadd.u32 %v, %v, %r1;"));
    for (uint32_t i = 0; i < 32; ++i) REQUIRE(values[i] == (i < 10 ? 37 : 34));
    // Each way once, and once what follows: had they not met, the tail would count twice.
    REQUIRE(device.steps == kAround + 2 + 3 + 1 + 3);
}

TEST_CASE("a loop with different counts runs as often as the longest") {
    Divergent device;
    const auto values = device.run(kernel("L:\nadd.u32 %v, %v, 1;\nsetp.lt.u32 %p1, %v, %t;\n@%p1 bra L;"));
    for (uint32_t i = 0; i < 32; ++i) REQUIRE(values[i] == std::max(i, 1u));
    REQUIRE(device.steps == kAround + 3 * 31);
}

TEST_CASE("uniform branches cost nothing more") {
    Divergent device;
    device.run(kernel("setp.lt.u32 %p1, %t, 100;\n@%p1 bra A;\nadd.u32 %v, %v, 1;\nA:"));
    REQUIRE(device.steps == kAround + 2);
}

TEST_CASE("nested branches and early exits") {
    Divergent device;
    const auto values =
        device.run(kernel("and.b32 %r1, %t, 1; and.b32 %r2, %t, 2; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, "
                          "%r2, 0; setp.gt.u32 %p3, %t, 27;\n"
                          "@%p1 bra A;\nadd.u32 %v, %v, 1;\n@%p2 bra C;\nadd.u32 %v, %v, 10;\n@%p3 "
                          "exit;\nC:\nadd.u32 %v, %v, 100;\nbra B;\nA:\nadd.u32 %v, %v, 1000;\nB:\n"
                          "activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %v, %r3, 10000, %v;"));
    for (uint32_t i = 0; i < 32; ++i) {
        const uint32_t gone = i == 31 ? 99 : 0;
        const uint32_t value = i % 2 == 0 ? 1000 : i % 4 < 2 ? 101 : 111;
        REQUIRE(values[i] == (gone != 0 ? gone : value + 310000));
    }
}

TEST_CASE("threads that returned do not hold up those at a barrier") {
    Divergent device;
    const auto values = device.run(
        kernel(
            "setp.gt.u32 %p1, %t, 50;\n@%p1 bra OUT;\nbar.sync 0;\nmov.u32 %v, 1;\nbra GO;\nOUT:\nret;\nGO:"),
        96);
    for (uint32_t i = 0; i < 96; ++i) REQUIRE(values[i] == (i > 50 ? 99 : 1));
}

TEST_CASE("a call by some threads") {
    Divergent device;
    const auto values = device.run(
        kernel("setp.lt.u32 %p1, %t, 7;\nmov.u32 %v, %t;\n@%p1 call (%v), triple, (%t);\nadd.u32 %v, %v, 1;",
               ".func (.reg .u32 %r) triple(.reg .u32 %a)\n{\n.reg .pred %p;\nsetp.eq.u32 %p, %a, 3;\n"
               "mul.lo.u32 %r, %a, 3;\n@%p ret;\nadd.u32 %r, %r, 100;\nret;\n}\n"));
    for (uint32_t i = 0; i < 32; ++i) REQUIRE(values[i] == (i == 3 ? 10 : i < 7 ? 3 * i + 101 : i + 1));
}

TEST_CASE("an exit inside a call") {
    Divergent device;
    const auto values = device.run(kernel(
        "call leave, (%t);\nadd.u32 %v, %t, 1;",
        ".func leave(.reg .u32 %a)\n{\n.reg .pred %p;\nsetp.gt.u32 %p, %a, 20;\n@%p exit;\nret;\n}\n"));
    for (uint32_t i = 0; i < 32; ++i) REQUIRE(values[i] == (i > 20 ? 99 : i + 1));
}

TEST_CASE("a thread that spins for another of its warp lets it run") {
    Divergent device;
    // Thread 0 waits for what thread 31 writes after the branch.
    const auto values =
        device.run(kernel("setp.ne.u32 %p1, %t, 0;\n@%p1 bra OTHERS;\nW:\nld.volatile.global.u32 %r1, "
                          "[flag];\nsetp.eq.u32 %p2, %r1, 0;\n"
                          "@%p2 bra W;\nmov.u32 %v, 7;\nOTHERS:\nsetp.eq.u32 %p3, %t, 31;\nmov.u32 %r2, "
                          "1;\n@%p3 st.volatile.global.u32 [flag], %r2;",
                          ".global .u32 flag;\n"));
    REQUIRE(values[0] == 7);
    REQUIRE(values[31] == 0);
}

TEST_CASE("a ragged warp and a block in three dimensions") {
    BenchDevice device;
    REQUIRE(device.load(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 out)\n{\n.reg .b64 "
        "%out, %o; .reg .b32 %r<9>;\n"
        "ld.param.u64 %out, [out];\nmov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 "
        "%r4, %ntid.x; mov.u32 %r5, %ntid.y;\n"
        "mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;\nmul.wide.u32 %o, %r6, 4; add.u64 "
        "%out, %out, %o;\n"
        "mov.u32 %r7, %ctaid.y;\nmad.lo.u32 %r6, %r7, 1000, %r6;\nst.global.u32 [%out], %r6;\nret;\n}\n"));
    const uint64_t out = device.copy_in(std::vector<uint32_t>(105, 9));
    REQUIRE(device.launch("test", {1, 3, 1}, {5, 7, 3}, 0, out));
    const auto values = device.copy_out<uint32_t>(out, 105);
    for (uint32_t i = 0; i < 105; ++i) REQUIRE(values[i] == 2000 + i);
}
