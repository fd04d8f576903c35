// The door in PTX: the text that it makes, which kernels are left alone, and which wait.
#include "rewriter/ptx/door.h"

#include <catch2/catch.hpp>

#include "tests/ptx/files.h"

using namespace smt::ptx;

namespace {

WithDoors with_doors(const std::string& text, LeaveAlone leave_alone = nullptr) {
    auto result = put_doors(text, leave_alone);
    if (auto* problem = std::get_if<Diagnostic>(&result)) FAIL(to_string(*problem));
    return std::get<WithDoors>(result);
}

std::string module_of(const std::string& declarations, const char* target = "sm_90") {
    return std::string(".version 8.0\n.target ") + target + "\n.address_size 64\n" + declarations;
}

std::string kernel_with(const std::string& parameters, const std::string& body = "") {
    return ".visible .entry k(" + parameters + ")\n{\n.reg .b32 r;\n.reg .b64 a;\n" + body + "ret;\n}\n";
}

DoorEntry first_of(const std::string& text) { return with_doors(text).entries.at(0); }

}  // namespace

TEST_CASE("a kernel with the door has its prologue and one parameter more", "[ptx][door]") {
    const std::string folder = SMT_PTX_DOOR_FOLDER;
    const WithDoors made = with_doors(read_text(folder + "/entry.ptx"));
    CHECK(made.text == read_text(folder + "/entry.golden.ptx"));
    REQUIRE(made.entries.size() == 1);
    CHECK(made.entries[0].name == "set");
    CHECK(made.entries[0].reason.empty());
    CHECK(made.entries[0].offset == 16);
    CHECK_FALSE(made.entries[0].waits);
}

TEST_CASE("the door's parameter is at a multiple of 16 behind the others", "[ptx][door]") {
    CHECK(first_of(module_of(kernel_with(""))).offset == 0);
    CHECK(first_of(module_of(kernel_with(".param .u32 n"))).offset == 16);
    CHECK(first_of(module_of(kernel_with(".param .u8 n, .param .u64 m"))).offset == 16);
    CHECK(first_of(module_of(kernel_with(".param .align 8 .b8 n[24], .param .u64 m"))).offset == 32);
    CHECK(first_of(module_of(kernel_with(".param .b8 n[4320]"))).offset == 4320);
}

TEST_CASE("a cluster's place is asked for where the architecture knows clusters", "[ptx][door]") {
    CHECK(with_doors(module_of(kernel_with(""), "sm_90")).text.find("%cluster_nctarank") !=
          std::string::npos);
    CHECK(with_doors(module_of(kernel_with(""), "sm_80")).text.find("%cluster_nctarank") ==
          std::string::npos);
}

TEST_CASE("functions and other declarations stay as they are", "[ptx][door]") {
    const std::string function = ".func f()\n{\nret;\n}\n.global .u32 g;\n";
    const WithDoors made = with_doors(module_of(function + kernel_with("")));
    REQUIRE(made.entries.size() == 1);
    const auto parsed = parse(made.text), before = parse(module_of(function));
    const auto& declarations = std::get<Module>(parsed).declarations;
    REQUIRE(declarations.size() == 3);
    CHECK(std::vector(declarations.begin(), declarations.begin() + 2) ==
          std::get<Module>(before).declarations);
}

TEST_CASE("a kernel that is left alone says why, and a text without others is not changed", "[ptx][door]") {
    const auto left_alone = [](const std::string& text, LeaveAlone leave_alone = nullptr) {
        const WithDoors made = with_doors(text, leave_alone);
        CHECK(made.text.empty());
        return made.entries.at(0).reason;
    };
    CHECK(left_alone(module_of(kernel_with(".param .b8 n[4321]"))) == "it has no room for a parameter");
    CHECK(left_alone(module_of(kernel_with(".param .u32 smt_door_launch"))) ==
          "it has a parameter of the door's name");
    CHECK(left_alone(module_of(kernel_with(""), "sm_60")) == "its PTX is for sm_60 and 64 bits");
    CHECK(left_alone(module_of(kernel_with("")),
                     [](std::string_view) -> std::string_view { return "it is mine"; }) == "it is mine");
    // Its address is taken: in a variable, in code, by a declaration for that.
    const std::string launches = "device code may launch it";
    CHECK(left_alone(module_of(kernel_with("") + ".global .u64 at = k;\n")) == launches);
    CHECK(left_alone(module_of(kernel_with("") + ".func f()\n{\n.reg .b64 a;\nmov.u64 a, k;\nret;\n}\n")) ==
          launches);
    CHECK(left_alone(module_of(".visible .entry k();\n" + kernel_with(""))) == launches);
}

TEST_CASE("one kernel is left alone and another is not", "[ptx][door]") {
    const std::string other = ".visible .entry other()\n{\nret;\n}\n";
    const WithDoors made = with_doors(module_of(kernel_with(".param .b8 n[4321]") + other));
    REQUIRE(made.entries.size() == 2);
    CHECK_FALSE(made.entries[0].reason.empty());
    CHECK(made.entries[1].reason.empty());
    const auto parsed = parse(made.text);
    CHECK(std::get<Function>(std::get<Module>(parsed).declarations[0]).parameters.size() == 1);
    CHECK(std::get<Function>(std::get<Module>(parsed).declarations[1]).parameters.size() == 1);
}

TEST_CASE("a kernel waits that loads what other CTAs write", "[ptx][door]") {
    const auto waits = [](const std::string& load) {
        return first_of(module_of(kernel_with("", load))).waits;
    };
    for (const char* load :
         {"ld.volatile.global.u32 r, [a];", "ld.relaxed.gpu.global.u32 r, [a];",
          "ld.acquire.sys.global.u32 r, [a];", "ld.volatile.u32 r, [a];", "{ ld.acquire.gpu.u32 r, [a]; }"})
        CHECK(waits(load));
    for (const char* load :
         {"ld.global.u32 r, [a];", "ld.volatile.shared.u32 r, [a];", "ld.relaxed.cta.global.u32 r, [a];",
          "ld.acquire.gpu.shared::cluster.u32 r, [a];", "atom.relaxed.gpu.global.add.u32 r, [a], 1;", ""})
        CHECK_FALSE(waits(load));
    const std::string function =
        ".func f()\n{\n.reg .b32 r;\n.reg .b64 a;\nld.acquire.gpu.global.u32 r, [a];\nret;\n}\n";
    CHECK(first_of(module_of(function + kernel_with(""))).waits == false);
    CHECK(first_of(module_of(function + kernel_with("", "call f;\n"))).waits);
}

TEST_CASE("a text that cannot be read is named", "[ptx][door]") {
    CHECK(std::holds_alternative<Diagnostic>(put_doors("nonsense")));
}
