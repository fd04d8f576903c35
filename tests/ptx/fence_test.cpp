// Which instructions a fence checks, and which it refuses (rewriter/ptx/fence).
#include "rewriter/ptx/fence/fence.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/fence/accesses.h"
#include "rewriter/ptx/persistent/walk.h"

using namespace smt::ptx;
using smt::FenceSpace;
using smt::FenceUse;

namespace {

std::string with_body(const std::string& body, const std::string& declarations = "",
                      const char* target = "sm_90") {
    return std::string(".version 8.6\n.target ") + target + "\n.address_size 64\n" + declarations +
           ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n"
           ".reg .pred %p<9>;\nld.param.u64 %rd1, [p];\n" +
           body + "ret;\n}\n";
}

fence::Fenced fenced(const std::string& text) {
    auto result = fence::fence(text);
    if (auto* problem = std::get_if<Diagnostic>(&result)) FAIL(to_string(*problem));
    return std::get<fence::Fenced>(std::move(result));
}

std::string refusal_of(const std::string& body, const std::string& declarations = "") {
    const fence::Fenced result = fenced(with_body(body, declarations));
    REQUIRE(result.reason.empty());
    return result.functions.back().reason;
}

uint64_t checks_of(const std::string& body, const std::string& declarations = "") {
    const fence::Fenced result = fenced(with_body(body, declarations));
    REQUIRE(result.functions.back().reason.empty());
    CHECK(std::holds_alternative<Module>(parse(result.text)));
    return result.checks;
}

}  // namespace

TEST_CASE("what an instruction accesses", "[ptx][fence]") {
    struct {
        const char* text;
        FenceSpace space;
        FenceUse use;
        uint32_t bytes;
    } const cases[] = {
        {"ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", FenceSpace::kGlobal, FenceUse::kLoad, 16},
        {"st.u8 [%rd1], %r1;", FenceSpace::kGeneric, FenceUse::kStore, 1},
        {"atom.global.cas.b64 %rd2, [%rd1], %rd3, %rd4;", FenceSpace::kGlobal, FenceUse::kAtomic, 8},
        {"red.shared.add.u32 [%r1], 1;", FenceSpace::kShared, FenceUse::kAtomic, 4},
        {"mbarrier.init.shared.b64 [%r1], 1;", FenceSpace::kShared, FenceUse::kAtomic, 8},
        {"discard.global.L2 [%rd1], 128;", FenceSpace::kGlobal, FenceUse::kStore, 128},
    };
    for (const auto& each : cases) {
        INFO(each.text);
        const auto parsed = parse(with_body(each.text));
        const auto& kernel = std::get<Function>(std::get<Module>(parsed).declarations.back());
        const Instruction* found = nullptr;
        persistent::each_instruction(*kernel.body, [&](const Instruction& instruction) {
            if (instruction.opcode != Opcode::kRet) found = &instruction;
        });
        const fence::Effect effect = fence::effect_of(*found);
        REQUIRE(effect.refusal.empty());
        REQUIRE(effect.accesses.size() == 1);
        CHECK(effect.accesses[0].space == each.space);
        CHECK(effect.accesses[0].use == each.use);
        CHECK(effect.accesses[0].bytes == each.bytes);
    }
}

TEST_CASE("local memory, parameters and constants need no check", "[ptx][fence]") {
    CHECK(checks_of("ld.const.u32 %r1, [c];\n", ".const .u32 c;\n") == 0);
    CHECK(checks_of(".local .u32 l;\nst.local.u32 [l], %r1;\nprefetch.global.L2 [%rd1];\n") == 0);
    CHECK(checks_of("ld.global.u32 %r1, [v+4];\n", ".global .u32 v[2];\n") == 0);
}

TEST_CASE("one check is for what is sure to follow it", "[ptx][fence]") {
    const std::string first = "ld.global.u32 %r1, [%rd1];\n";
    CHECK(checks_of(first + "st.global.u32 [%rd1+400], %r1;\n") == 2);  // may be read only
    CHECK(checks_of("st.global.u32 [%rd1], %r1;\n" + first) == 1);
    CHECK(checks_of(first + "ld.global.u32 %r1, [%rd1+65536];\n") == 1);
    CHECK(checks_of(first + "ld.global.u32 %r1, [%rd1+65540];\n") == 2);
    CHECK(checks_of(first + "ld.global.u16 %r1, [%rd1+4];\n") == 1);
    CHECK(checks_of(first + "ld.global.u16 %r1, [%rd1+2];\n") == 2);
    CHECK(checks_of(first + "ld.global.u64 %rd2, [%rd1+8];\n") == 2);
    CHECK(checks_of(first + "ld.u32 %r2, [%rd1];\n") == 2);  // another space
    CHECK(checks_of(first + "@%p1 ld.global.u32 %r2, [%rd1];\n") == 1);
    CHECK(checks_of(first + "@%p1 ld.global.u32 %r2, [%rd1+4];\n") == 2);
    CHECK(checks_of("@%p1 ld.global.u32 %r2, [%rd1];\n" + first) == 2);
    CHECK(checks_of(first + "add.s64 %rd1, %rd1, 4;\n" + first) == 2);
    CHECK(checks_of("ld.global.u64 %rd1, [%rd1];\nld.global.u64 %rd1, [%rd1];\n") == 2);
    CHECK(checks_of(first + "here:\n" + first) == 2);
    CHECK(checks_of(first + "@%p1 bra here;\n" + first + "here:\n") == 2);
    CHECK(checks_of(first + "{\n" + first + "}\n") == 2);
    CHECK(checks_of(first + "bar.sync 0;\n" + first) == 1);
}

TEST_CASE("what cannot be checked is refused, by name", "[ptx][fence]") {
    CHECK(refusal_of("ld.global.u32 %r1, [64];\n") == "has an address that is a number");
    CHECK(refusal_of("ld.global.u32 %r1, [v+8];\n", ".global .u32 v[2];\n") ==
          "accesses a variable beyond its end");
    CHECK(refusal_of("ld.shared.u32 %r1, [v];\n", ".global .u32 v[2];\n") ==
          "accesses a variable of another state space");
    CHECK(refusal_of("ld.u32 %r1, [v];\n", ".shared .u32 v[2];\n") ==
          "accesses a variable of another state space");
    CHECK(refusal_of("{\n.shared .u32 v[9];\n}\nld.shared.u32 %r1, [v+16];\n", ".shared .u32 v[2];\n") ==
          "accesses one of several variables with one name");
    CHECK(refusal_of("ld.u32 %r1, [v];\n", ".global .u32 v[2];\n").empty());
    CHECK(refusal_of("bar.sync 1, 64;\n").starts_with("has a barrier of a number of threads"));
    CHECK(refusal_of("bar.arrive 1, 64;\n").starts_with("has a barrier of a number of threads"));
    CHECK(refusal_of("ld.shared::cluster.u32 %r1, [%r2];\n").starts_with("accesses other blocks'"));
    CHECK(refusal_of("cp.async.bulk.commit_group;\n").starts_with("copies in bulk"));
    CHECK(refusal_of("call free, (%rd1);\n", ".extern .func free(.param .b64 p);\n") ==
          "calls free, whose code is not here");
    CHECK(refusal_of("wgmma.fence.sync.aligned;\n") == "has the instruction wgmma");
    CHECK(refusal_of("{\n.reg .b64 %fence_bytes;\n}\n").starts_with("has %fence_bytes"));
    CHECK(refusal_of("{\n.reg .b64 %fence_at;\n}\n").starts_with("has %fence_at"));
    CHECK(refusal_of("bar.sync 0;\n@%p1 trap;\n").empty());
}

TEST_CASE("names of the program's are not those of a check", "[ptx][fence]") {
    CHECK(checks_of("{\n.reg .b64 at, in, block;\n.reg .pred well;\nld.global.u32 %r1, [at];\n"
                    "@well ld.volatile.global.u32 %r1, [in];\n}\n") == 2);
}

TEST_CASE("modules that are refused as a whole", "[ptx][fence]") {
    CHECK(fenced(with_body("", "", "sm_61")).reason.starts_with("it is for sm_61"));
    CHECK(fenced(with_body("", ".global .u32 smt_fence;\n")).reason == "smt_fence is a name of the fence's");
    CHECK(std::holds_alternative<Diagnostic>(fence::fence("nothing")));
}

TEST_CASE("a word of a record says what it was made of", "[ptx][fence]") {
    const smt::FenceAccess access{128, FenceSpace::kShared, FenceUse::kAtomic, smt::kMostFenceFunctions - 1};
    const smt::FenceAccess again = smt::fence_access(smt::fence_word(access));
    CHECK(again.bytes == access.bytes);
    CHECK(again.space == access.space);
    CHECK(again.use == access.use);
    CHECK(again.function == access.function);
}
