// What kernels read and write by which parameters; each one that may be repeated beside a twin that may not.
#include "rewriter/ptx/effects.h"

#include <catch2/catch.hpp>

using namespace smt::ptx;

namespace {

const char* const kRegisters =
    ".reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.reg .f32 %f<8>;\n"
    ".shared .align 4 .b8 tile[1024];\n.local .align 8 .b8 stack[64];\n";
// %rd1, %rd2: what a and b point to; %rd4: the thread's place in bytes.
const char* const kBegin =
    "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.s32 %r5, %r2, %r3, %r4;\nmul.wide.s32 %rd4, %r5, 4;\n"
    "cvta.to.global.u64 %rd5, %rd1;\ncvta.to.global.u64 %rd6, %rd2;\n"
    "add.s64 %rd7, %rd5, %rd4;\nadd.s64 %rd8, %rd6, %rd4;\n";

Effects effects(const std::string& body, const std::string& before = "",
                const std::string& parameters = ".param .u64 a, .param .u64 b, .param .u32 n") {
    const auto all =
        effects_in(".version 8.0\n.target sm_90\n.address_size 64\n" + before + ".visible .entry k(" +
                   parameters + ")\n{\n" + kRegisters + body + "ret;\n}\n");
    if (const auto* problem = std::get_if<Diagnostic>(&all)) FAIL(to_string(*problem));
    return std::get<0>(all).at("k");
}
Effects of(const std::string& body, const std::string& before = "") { return effects(kBegin + body, before); }

using Sets = std::set<Origins>;

}  // namespace

TEST_CASE("effects: a copy reads by one parameter and writes by another", "[ptx][effects]") {
    const Effects found = of("ld.global.f32 %f1, [%rd7];\nst.global.f32 [%rd8+16], %f1;\n");
    CHECK(found.refusal.empty());
    CHECK(found.reads == Sets{{0}});
    CHECK(found.writes == Sets{{8}});
}

TEST_CASE("effects: what is read and written by one parameter is in both", "[ptx][effects]") {
    const Effects found = of("ld.global.f32 %f1, [%rd7];\nst.global.f32 [%rd7], %f1;\n");
    CHECK(found.reads == Sets{{0}});
    CHECK(found.writes == Sets{{0}});
}

TEST_CASE("effects: an address of two parameters has either of them", "[ptx][effects]") {
    CHECK(of("selp.b64 %rd9, %rd7, %rd8, %p1;\nst.global.u32 [%rd9], %r1;\n").writes == Sets{{0, 8}});
    CHECK(of("add.s64 %rd9, %rd5, %rd6;\nst.global.u32 [%rd9], %r1;\n").writes == Sets{{0, 8}});
}

TEST_CASE("effects: a product that is added to an address leaves it one", "[ptx][effects]") {
    const std::string sum = "mad.wide.s32 %rd9, %r5, 4, %rd6;\n";
    CHECK(of(sum + "st.global.u32 [%rd9], %r1;\n").writes == Sets{{8}});
    CHECK(of(sum + "selp.b64 %rd10, %rd7, %rd9, %p1;\nst.global.u32 [%rd10], %r1;\n").writes == Sets{{0, 8}});
}

TEST_CASE("effects: a register has what is written to it anywhere, also behind the access",
          "[ptx][effects]") {
    const Effects found =
        of("mov.u64 %rd9, %rd7;\nL:\nst.global.u32 [%rd9], %r1;\n"
           "mov.u64 %rd10, %rd8;\nmov.u64 %rd9, %rd10;\n@%p1 bra L;\n");
    CHECK(found.writes == Sets{{0, 8}});
}

TEST_CASE("effects: an index that is loaded is no address, a pointer that is loaded is one",
          "[ptx][effects]") {
    const Effects index =
        of("ld.global.u32 %r6, [%rd7];\nmul.wide.u32 %rd9, %r6, 4;\n"
           "add.s64 %rd10, %rd6, %rd9;\nst.global.u32 [%rd10], %r1;\n");
    CHECK(index.refusal.empty());
    CHECK(index.writes == Sets{{8}});
    const Effects pointer = of("ld.global.u64 %rd9, [%rd7];\nst.global.u32 [%rd9], %r1;\n");
    CHECK(pointer.refusal == "it writes memory of which the address is not a parameter");
    CHECK(
        of("ld.global.u64 %rd9, [%rd7];\nadd.s64 %rd9, %rd9, %rd6;\nst.global.u32 [%rd9], %r1;\n").refusal ==
        "it writes memory of which the address is not a parameter");
}

TEST_CASE("effects: pointers within parameters count by their offset", "[ptx][effects]") {
    const std::string parameters = ".param .u32 n, .param .align 8 .b8 a[32]";
    CHECK(effects("ld.param.u64 %rd1, [a+16];\nst.global.u32 [%rd1], %r1;\n", "", parameters).writes ==
          Sets{{24}});
    CHECK(effects("ld.param.v2.u64 {%rd1, %rd2}, [a+8];\nst.global.u32 [%rd2], %r1;\n", "", parameters)
              .writes == Sets{{24}});
    // Put together of two halves.
    CHECK_FALSE(effects("ld.param.u32 %r1, [a];\nmov.b64 %rd1, {%r1, %r1};\nst.global.u32 [%rd1], %r1;\n", "",
                        parameters)
                    .refusal.empty());
}

TEST_CASE("effects: generic addresses are known by where they come from", "[ptx][effects]") {
    CHECK(of("ld.f32 %f1, [%rd7];\nst.f32 [%rd8], %f1;\n").writes == Sets{{8}});
    const Effects own =
        of("mov.u64 %rd9, tile;\ncvta.shared.u64 %rd10, %rd9;\nadd.s64 %rd10, %rd10, %rd4;\n"
           "st.u32 [%rd10], %r1;\nld.u32 %r6, [%rd10];\n");
    CHECK(own == Effects{});
    CHECK_FALSE(of("mov.u64 %rd9, tile;\ncvta.shared.u64 %rd10, %rd9;\nadd.s64 %rd10, %rd10, %rd5;\n"
                   "st.u32 [%rd10], %r1;\n")
                    .refusal.empty());
}

TEST_CASE("effects: shared and local memory and constants do not count", "[ptx][effects]") {
    CHECK(of("st.shared.u32 [tile], %r1;\nbar.sync 0;\nld.volatile.shared.u32 %r6, [tile+4];\n"
             "st.local.u32 [stack], %r1;\nld.local.u32 %r7, [stack];\nld.const.u32 %r8, [table];\n",
             ".const .u32 table = 3;\n") == Effects{});
    CHECK(of("mov.u64 %rd9, counter;\nst.global.u32 [%rd9], %r1;\n", ".global .u32 counter;\n").refusal ==
          "it writes memory of which the address is not a parameter");
    CHECK(of("ld.global.u32 %r6, [counter];\n", ".global .u32 counter;\n").refusal ==
          "it reads memory of which the address is not a parameter");
}

TEST_CASE("effects: asynchronous copies read", "[ptx][effects]") {
    const Effects found =
        of("cp.async.ca.shared.global [tile], [%rd7], 4;\ncp.async.commit_group;\n"
           "cp.async.wait_group 0;\n");
    CHECK(found.refusal.empty());
    CHECK(found.reads == Sets{{0}});
}

TEST_CASE("effects: what is refused", "[ptx][effects]") {
    const auto refused = [](const std::string& body, const std::string& reason,
                            const std::string& before = "") {
        CHECK(of(body, before).refusal == reason);
        CHECK(of(body, before).writes.empty());
    };
    refused("atom.global.add.u32 %r6, [%rd7], 1;\n", "it has atomics");
    refused("red.global.add.u32 [%rd7], 1;\n", "it has atomics");
    refused("atom.shared.add.u32 %r6, [tile], 1;\nst.global.u32 [%rd7], %r6;\n", "it has atomics");
    refused("atom.shared.add.u32 %r6, [tile], 1;\natom.shared.max.u32 %r7, [tile], %r1;\n", "it has atomics");
    refused("atom.shared.add.f32 %f1, [tile], %f2;\n", "it has atomics");
    refused("atom.shared.exch.b32 %r6, [tile], %r1;\n", "it has atomics");
    refused("atom.shared.cas.b32 %r6, [tile], %r1, %r2;\n", "it has atomics");
    refused("atom.shared::cluster.add.u32 %r6, [tile], 1;\n", "it has atomics");
    refused("atom.add.u32 %r6, [%rd7], 1;\n", "it has atomics");
    refused("ld.volatile.global.u32 %r6, [%rd7];\n", "it has accesses that are volatile or ordered");
    refused("ld.acquire.gpu.global.u32 %r6, [%rd7];\n", "it has accesses that are volatile or ordered");
    refused("st.release.gpu.global.u32 [%rd7], %r1;\n", "it has accesses that are volatile or ordered");
    refused("membar.gl;\n", "it has the instruction membar");
    refused("fence.acq_rel.gpu;\n", "it has the instruction fence");
    refused("mov.u32 %r6, %smid;\n", "it reads %smid");
    refused("mov.u64 %rd9, %clock64;\n", "it reads %clock64");
    refused("mov.u32 %r6, %envreg2;\n", "it reads %envreg");
    refused("activemask.b32 %r6;\n", "it has the instruction activemask");
    refused("trap;\n", "it has the instruction trap");
    refused("call f, ();\n", "it calls a function", ".func f()\n{\nret;\n}\n");
    refused("st.global.u32 [4096], %r1;\n", "it writes memory of which the address is not a parameter");
}

TEST_CASE("effects: atomics of shared memory whose order makes no difference", "[ptx][effects]") {
    CHECK(of("atom.shared.add.u32 %r6, [tile], 1;\natom.shared.add.u32 %r6, [tile+4], 2;\n").refusal.empty());
    CHECK(of("red.shared.max.s32 [tile], %r1;\n").refusal.empty());
    CHECK(of("atom.shared.xor.b64 %rd9, [tile], %rd1;\n").refusal.empty());
}

TEST_CASE("effects: a text that cannot be parsed has none", "[ptx][effects]") {
    CHECK(std::holds_alternative<Diagnostic>(effects_in("no ptx")));
}
