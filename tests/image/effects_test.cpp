// What the kernels of an image read and write.
#include "runtime/image/effects.h"

#include <catch2/catch.hpp>

#include "tests/image/made.h"

using namespace smt::image;

namespace {

const std::string kKernelText =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry set(.param .u64 to)\n{\n.reg .b64 a;\n"
    "ld.param.u64 a, [to];\nst.global.u32 [a], 1;\nret;\n}\n";

}  // namespace

TEST_CASE("effects of an image are those of its PTX for the device", "[effects]") {
    const auto found = effects(kKernelText, 90);
    REQUIRE(std::holds_alternative<Effects>(found));
    CHECK(std::get<Effects>(found).at("set").writes == std::set<smt::ptx::Origins>{{0}});
    CHECK(std::holds_alternative<Effects>(effects(kKernelText + std::string(3, '\0'), 100)));
    CHECK(std::get<Problem>(effects(kKernelText, 80)).text == "the image has no PTX for the device");
    CHECK(std::holds_alternative<Problem>(effects("none", 90)));
    CHECK(std::get<Problem>(effects(".version 8.0\n.target sm_90\n.entry", 90)).text.find("cannot be read") !=
          std::string::npos);
}

TEST_CASE("effects of an image are not those of PTX beside other machine code", "[effects]") {
    const auto found = [](const std::vector<Made>& made) { return effects(fatbin(made), 90); };
    CHECK(std::holds_alternative<Effects>(found({{2, 90, 0, "code"}, {1, 90, 0, kKernelText}})));
    CHECK(std::holds_alternative<Effects>(found({{2, 80, 0, "code"}, {1, 90, 0, kKernelText}})));
    CHECK(std::get<Problem>(found({{2, 90, 0, "code"}, {1, 80, 0, kKernelText}})).text ==
          "its PTX is for another architecture than its machine code");
    CHECK(std::holds_alternative<Problem>(found({{2, 90, kSpecific, "code"}, {1, 90, 0, kKernelText}})));
}
