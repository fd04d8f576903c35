// What cannot be run is refused by name, with its line, and spoils nothing else.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "runtime/device/simulated/exec/table.h"
#include "tests/ptx/exec/bench_device.h"

using namespace smt::test;

namespace {

const std::string kHead = ".version 8.0\n.target sm_90\n.address_size 64\n";

std::string refusal(const std::string& module, const std::string& kernel = "test") {
    BenchDevice device;
    if (device.load(kHead + module) && device.kernel(kernel) != nullptr) return "accepted";
    return device.error;
}

std::string in_kernel(const std::string& line) {
    return ".visible .entry test()\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>; "
           ".reg .b16 %h<3>;\n" +
           line + "\nret;\n}\n";
}

}  // namespace

TEST_CASE("an instruction that the device does not execute") {
    REQUIRE(refusal(in_kernel("wgmma.fence.sync.aligned;")) ==
            "line 7: test: wgmma.fence.sync.aligned: the simulated device does not execute this instruction");
    REQUIRE(refusal(in_kernel("barrier.cluster.arrive;")) ==
            "line 7: test: barrier.cluster.arrive: the simulated device does not execute it with .cluster");
    REQUIRE(refusal(in_kernel("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;")).find("movmatrix") !=
            std::string::npos);
}

TEST_CASE("operands that do not fit") {
    REQUIRE(refusal(in_kernel("add.u32 %r1, %rd1, %r2;")) ==
            "line 7: test: add.u32: %rd1 has 64 bits, .u32 has 32");
    REQUIRE(refusal(in_kernel("add.f32 %f1, %f2, 1;")) ==
            "line 7: test: add.f32: an integer constant where a floating-point one belongs");
    REQUIRE(refusal(in_kernel("cvt.s32.f32 %r1, %f1;")) ==
            "line 7: test: cvt.s32.f32: a rounding modifier belongs here");
    REQUIRE(refusal(in_kernel("ld.global.u64 %r1, [%rd1];")).find("narrower") != std::string::npos);
    REQUIRE(refusal(in_kernel("setp.hi.f32 %p1, %f1, %f2;")).find("combination") != std::string::npos);
    REQUIRE(refusal(".const .u32 c;\n" + in_kernel("st.const.u32 [c], %r1;")).find("const") !=
            std::string::npos);
}

TEST_CASE("symbols that are not there") {
    REQUIRE(refusal(".extern .func other(.param .b32 x);\n" +
                    in_kernel("{ .param .b32 x; st.param.b32 [x], 1; call other, (x); }")) ==
            "line 4: test: other is called and defined nowhere");
    REQUIRE(refusal(".extern .global .u32 elsewhere;\n" + in_kernel("ld.global.u32 %r1, [elsewhere];")) ==
            "line 4: elsewhere is declared .extern and defined nowhere");
    REQUIRE(refusal(in_kernel(""), "nobody") == "the module has no kernel nobody");
    REQUIRE(refusal(".global .u64 p = nothing;\n" + in_kernel("")).find("nothing") != std::string::npos);
}

TEST_CASE("one exotic kernel does not spoil the others") {
    BenchDevice device;
    REQUIRE(device.load(kHead + in_kernel("wgmma.fence.sync.aligned;") +
                        ".visible .entry plain()\n{\nret;\n}\n"));
    REQUIRE(device.kernel("test") == nullptr);
    REQUIRE(device.kernel("plain") != nullptr);
    REQUIRE(device.module->kernel_names() == std::vector<std::string>{"test", "plain"});
}

TEST_CASE("several parts are linked into one module") {
    BenchDevice device;
    const auto parse = [](const std::string& text) {
        return std::get<smt::ptx::Module>(smt::ptx::parse(kHead + text));
    };
    std::vector<smt::ptx::Module> parts;
    parts.push_back(parse(
        ".extern .global .u32 shared_value;\n.extern .func (.reg .u32 %r) helper(.reg .u32 %a);\n"
        ".global .u32 own = 1;\n.visible .entry test(.param .u64 out)\n{\n.reg .b32 %r<4>; .reg .b64 %rd;\n"
        "ld.param.u64 %rd, [out];\nld.global.u32 %r1, [shared_value];\ncall (%r2), helper, (%r1);\n"
        "ld.global.u32 %r3, [own];\nadd.u32 %r2, %r2, %r3;\nst.global.u32 [%rd], %r2;\nret;\n}\n"));
    parts.push_back(
        parse(".visible .global .u32 shared_value = 20;\n.global .u32 own = 300;\n"
              ".visible .func (.reg .u32 %r) helper(.reg .u32 %a)\n{\n.reg .b32 %x;\nld.global.u32 %x, "
              "[own];\nadd.u32 %r, %a, %x;\nret;\n}\n"));
    const bool linked = device.link(std::move(parts));
    INFO(device.error);
    REQUIRE(linked);
    const uint64_t out = device.copy_in(std::vector<uint32_t>(1));
    REQUIRE(device.launch("test", {1}, {1}, 0, out));
    REQUIRE(device.copy_out<uint32_t>(out, 1)[0] == 321);
}

TEST_CASE("the list of instructions in docs/ is the decoder's") {
    std::ifstream stream(SMT_INSTRUCTION_DOCUMENT);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    REQUIRE(text == sim::instruction_document());
}
