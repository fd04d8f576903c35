#include "runtime/image/variable_uses.h"

#include <catch2/catch.hpp>
#include <string>

#include "runtime/image/ptx_facts.h"
#include "tests/image/made.h"

namespace smt::image {
namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

// A text with these declarations, and a kernel with that body.
std::string text(const std::string& declarations, const std::string& body) {
    return kHead + declarations +
           "\n.visible .entry kernel(.param .u64 .ptr .global .align 8 place) {\n    .reg .b64 %rd<4>;\n   "
           " " +
           body + "\n    ret;\n}\n";
}

bool uses(const std::string& declarations, const std::string& body) {
    return uses_variables_of_ptx(text(declarations, body));
}

TEST_CASE("a variable is used if a body names it", "[variable_uses]") {
    CHECK_FALSE(uses("", "ld.param.u64 %rd1, [place];"));
    CHECK_FALSE(uses(".visible .global .align 4 .u32 counter = 7;", ""));
    CHECK(uses(".visible .global .align 4 .u32 counter = 7;", "ld.global.u32 %r1, [counter];"));
    CHECK(uses(".global .align 4 .b8 table[0x100][2] = {1, 2, {3}};", "mov.u64 %rd1, table;"));
    CHECK(uses(".global .u32 one, two = 2, three;", "mov.u64 %rd1, three;"));
    CHECK(uses(".const .align 4 .b8 table[16];", "ld.const.u32 %r1, [table+4];"));
    CHECK(uses(".visible .global .attribute(.managed) .align 4 .u32 both;", "st.global.u32 [both], 1;"));
    CHECK(uses(".global .texref image;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];"));
    CHECK(uses(".texref image;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];"));
    CHECK(uses(".global .surfref image;", "suld.b.1d.b32.trap {%r1}, [image, {%r2}];"));
    CHECK(uses(".extern .global .u32 elsewhere;", "mov.u64 %rd1, elsewhere;"));
    CHECK(uses("", ".global .u32 within;"));
}

TEST_CASE("what is no use of a variable", "[variable_uses]") {
    const std::string counter = ".global .u32 counter;";
    CHECK_FALSE(uses(counter, "// counter\n    /* counter */ .pragma \"counter\";"));
    CHECK_FALSE(uses(counter, "mov.u64 %rd1, counters;"));
    CHECK_FALSE(uses(counter + "\n.global .u64 pointer = counter;", ""));
    CHECK_FALSE(uses(counter + "\n.section .debug_info { .b64 counter }", ""));
    CHECK_FALSE(uses(".shared .align 4 .b8 scratch[64];", "mov.u64 %rd1, scratch;"));
    CHECK_FALSE(uses(".func (.param .b32 r) f(.param .b64 x);", "call (%r1), f, (%rd1);"));
    CHECK_FALSE(uses(".global .u64 methods[2] = {0, f}; .func f() { ret; }", "call f;"));
}

TEST_CASE("NVIDIA's tables are no variables, or are some where that is asked for", "[variable_uses]") {
    const std::string reads =
        text(".global .align 4 .b8 __cudart_i2opi_f[24] = {1};", "mov.u64 %rd1, __cudart_i2opi_f;");
    CHECK_FALSE(uses_variables_of_ptx(reads));
    CHECK_FALSE(uses_of_ptx(reads).variables);
    CHECK(uses_variables_of_ptx(reads, true));
    CHECK(uses_of_ptx(reads, true).variables);
    const std::string bank = ".global .u32 g;\n.const .b32 mine, __cudart_t[2] = {1};";
    CHECK(uses_of_ptx(text(bank, "ld.const.u32 %r1, [__cudart_t];"), true).constants ==
          std::vector<std::string>{"mine"});
}

TEST_CASE("constants and other variables of a text are told apart", "[variable_uses]") {
    const auto of = [](const std::string& declarations, const std::string& body) {
        const TextUses uses = uses_of_ptx(text(declarations, body));
        return std::string(uses.variables ? "variables " : "") +
               (uses.constant_addresses ? "addresses " : "") + (uses.within ? "within" : "");
    };
    const std::string constant = ".const .align 4 .b8 table[16] = {1, 2, 3};\n", global = ".global .u32 g;\n";
    CHECK(of("", "") == "");
    CHECK(of(constant + global, "ld.const.u32 %r1, [table+4];") == "");
    CHECK(of(constant + global, "ld.global.u32 %r1, [g];") == "variables ");
    CHECK(of(global + constant, "ld.global.u32 %r1, [g];") == "variables ");
    CHECK(of(".texref image;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];") == "variables ");
    CHECK(of(constant, "mov.u64 %rd1, table; cvta.const.u64 %rd1, %rd1;") == "addresses ");
    CHECK(of(constant, "cvta.to.const.u64 %rd1, %rd1;") == "");
    CHECK(of(constant + ".global .u64 p = generic(table);", "") == "addresses ");
    CHECK(of(constant + ".const .u64 p[2] = {0, generic(table)};", "") == "addresses ");
    // by way of a constant, code has the variable's address
    CHECK(of(global + ".const .u64 p = generic(g);", "ld.const.u64 %rd1, [p];") == "variables ");
    CHECK(of(global + ".global .u64 p = generic(g);", "") == "");
    CHECK(of("", ".global .u32 inside;") == "variables within");
}

TEST_CASE("of what is no cubin, variables count as used", "[variable_uses]") {
    CHECK(uses_variables_of_cubin("no cubin"));
    CHECK_FALSE(uses_variables_of_ptx(""));
    CHECK_FALSE(uses_variables_of_ptx("\"}}}{"));
    CHECK_FALSE(uses_variables_of_ptx("}}; .entry {{{ }"));
}

TEST_CASE("system-wide atomics are found in kernels and in what they call", "[variable_uses]") {
    const std::string called =
        ".func adds(.param .u64 p) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; "
        "red.sys.global.add.u32 [%rd1], 1; ret; }";
    CHECK(kernels_with_system_atomics(text("", "fence.acq_rel.sys;")).empty());
    CHECK(kernels_with_system_atomics(text(called, "")).empty());
    CHECK(kernels_with_system_atomics(text(called, "{ .param .u64 a; call adds, (a); }")).contains("kernel"));
    // Without a declaration of %r1 it is no PTX.
    CHECK(kernels_with_system_atomics(text("", "atom.sys.global.add.u32 %r1, [%rd1], 1;")).empty());
    CHECK(kernels_with_system_atomics(
              text("", ".reg .b32 %r<2>;\n    atom.acq_rel.sys.global.add.u32 %r1, [%rd1], 1;"))
              .contains("kernel"));
}

}  // namespace
}  // namespace smt::image
