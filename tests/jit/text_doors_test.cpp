// Images that are opened for a device that executes PTX, with doors.
#include "runtime/jit/text_doors.h"

#include <catch2/catch.hpp>

using namespace smt::runtime::jit;

namespace {

constexpr std::string_view kOwnAndManaged = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry own(.param .u32 n)
{
    ret;
}
.visible .entry smt_own(.param .u32 n)
{
    ret;
}
)";

Opened open_two(bool doors, bool text_only) {
    OpenOrder asked;
    asked.device = {90, !text_only};
    asked.target = {90, text_only};
    asked.most_ptx_bytes = 1 << 20;
    asked.doors = doors;
    return open_image(asked, kOwnAndManaged, put_doors_into_text);
}

}  // namespace

TEST_CASE("a text that a device executes gets its doors, but for managed forms", "[doors]") {
    const Opened opened = open_two(true, true);
    CHECK(opened.problem.empty());
    REQUIRE(opened.doors.size() == 2);
    CHECK(opened.doors[0].kernel == "own");
    CHECK(opened.doors[0].reason.empty());
    CHECK(opened.doors[0].offset == 16);
    CHECK(opened.doors[1].reason == "it is a managed form");
    CHECK(code_of(opened, kOwnAndManaged).find("smt_door_launch") != std::string_view::npos);
    // A managed form is made of the text as it was.
    CHECK(opened.choices.ptx.text.find("smt_door_launch") == std::string::npos);
}

TEST_CASE("a text that is compiled, or for which no doors are asked, stays as it is", "[doors]") {
    for (const Opened& opened : {open_two(true, false), open_two(false, true)}) {
        CHECK(opened.doors.empty());
        CHECK(code_of(opened, kOwnAndManaged) == kOwnAndManaged);
    }
}
