// Managed forms are held to the registers of the kernels' own forms; the assembler is the real one.
#include "runtime/jit/worker/registers.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "runtime/image/kernel_facts.h"

using namespace smt;
using namespace smt::runtime::jit;
using Catch::Contains;

namespace {

// A kernel that holds so many values at once.
std::string holding(const std::string& name, int values) {
    std::string text = fmt::format(
        ".visible .entry {}(.param .u64 p)\n{{\n.reg .b64 %a<2>;\n.reg .f32 %f<{}>;\n"
        "ld.param.u64 %a1, [p];\n",
        name, values + 1);
    for (int i = 0; i < values; ++i)
        text += fmt::format("ld.volatile.global.f32 %f{}, [%a1+{}];\n", i, 4 * i);
    for (int i = 0; i < values; ++i)
        text += fmt::format("st.volatile.global.f32 [%a1+{}], %f{};\n", 4 * i, values - 1 - i);
    return text + "ret;\n}\n";
}

std::string module_of(int own, int managed) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n" + holding("k", own) + holding("smt_k", managed);
}

const std::vector<CompiledKernel> kKernels = {{"k", "k", "smt_k", "", Reuse::kAlways}};

struct ManagedResources {
    uint32_t registers = 0, stack_bytes = 0;
};

ManagedResources managed_in(const std::string& cubin) {
    auto facts = image::kernel_facts(cubin);
    REQUIRE(std::holds_alternative<std::vector<image::KernelFacts>>(facts));
    for (const image::KernelFacts& each : std::get<std::vector<image::KernelFacts>>(facts))
        if (each.name == "smt_k") return {each.registers, each.stack_bytes};
    FAIL("the managed form is not there");
    return {};
}

// What comes of a text that was held.
std::string assembled(const std::string& text, const Registers& known) {
    static const Assembler assembler;
    INFO(assembler.problem());
    REQUIRE(assembler.problem().empty());
    std::string reason;
    const std::string held = hold_registers(text, kKernels, known, "sm_90", assembler, reason);
    std::string cubin = assembler.assemble(held, "sm_90", reason);
    INFO(reason);
    REQUIRE(!cubin.empty());
    return cubin;
}

}  // namespace

TEST_CASE("a managed form with no more registers than its kernel's step stays as it is") {
    const std::string cubin = assembled(module_of(40, 42), {});
    const ManagedResources made = managed_in(cubin);
    CHECK(made.registers > 40);
    CHECK(made.stack_bytes == 0);
    CHECK(!exceeds(cubin, kKernels, {}));
    CHECK(exceeds(cubin, kKernels, {{"k", 24}}));  // what the program's machine code says counts more
    CHECK(!exceeds(cubin, kKernels, {{"k", 64}}));
}

TEST_CASE("a managed form with more is held to it, and let have more where it would spill") {
    const ManagedResources free = managed_in(assembled(module_of(20, 90), {{"k", 200}}));
    const ManagedResources held = managed_in(assembled(module_of(20, 90), {}));
    CHECK(free.stack_bytes == 0);
    CHECK(free.registers > 90);
    CHECK(held.registers > 32);  // 32 are the own form's step; 48 is as far as it goes
    CHECK(held.registers <= 48);
    CHECK(managed_in(assembled(module_of(20, 90), {{"k", 20}})).registers <= 48);
}

TEST_CASE("a text for the driver is limited by what is known") {
    CHECK_THAT(hold_registers(module_of(4, 8), kKernels, {{"k", 41}}), Contains(".maxnreg 48"));
    CHECK_THAT(hold_registers(module_of(4, 8), kKernels, {{"k", 4}}), Contains(".maxnreg 32"));
    CHECK(hold_registers(module_of(4, 8), kKernels, {}) == module_of(4, 8));
}

TEST_CASE("what cannot be assembled says why, and is held to what is known") {
    const Assembler assembler;
    std::string reason;
    CHECK_THAT(hold_registers(module_of(4, 8), kKernels, {{"k", 41}}, "sm_12345", assembler, reason),
               Contains(".maxnreg 48"));
    CHECK(assembler.assemble("nonsense", "sm_90", reason).empty());
    CHECK_THAT(reason, Contains("nvJitLink: error"));
    CHECK(assembler.assemble(module_of(1, 1), "sm_12345", reason).empty());
    CHECK_THAT(reason, Contains("sm_12345"));
}
