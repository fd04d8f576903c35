// Images that are opened for a tenant with fences.
#include <catch2/catch.hpp>

#include "runtime/jit/opened.h"
#include "runtime/jit/text_doors.h"

using namespace smt::runtime::jit;
using Catch::Contains;

namespace {

constexpr std::string_view kFencedText = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry good(.param .u64 to)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [to];
    st.global.u64 [%rd], %rd;
    ret;
}
.visible .entry bad()
{
    bar.sync 1, 64;
    ret;
}
)";

Opened open_text(std::string_view text, bool fences, bool executes) {
    OpenOrder asked;
    asked.moves = asked.tables = fences;
    asked.device = {90, !executes};
    asked.target = {90, executes};
    asked.most_ptx_bytes = 1 << 20;
    asked.doors = executes;
    asked.fences = fences;
    return open_image(asked, text, executes ? put_doors_into_text : nullptr);
}

}  // namespace

TEST_CASE("the fenced text takes the image's place, for all that is made of it", "[fences]") {
    for (const bool executes : {false, true}) {
        const Opened opened = open_text(kFencedText, true, executes);
        CHECK(opened.problem.empty());
        CHECK(opened.code == Code::kPtx);
        REQUIRE(opened.fenced.size() == 2);
        CHECK(opened.fenced[0].name == "good");
        CHECK(opened.fenced[0].reason.empty());
        CHECK_THAT(opened.fenced[1].reason, Contains("barrier of a number of threads"));
        CHECK_THAT(std::string(code_of(opened, kFencedText)), Contains("smt_fence_end"));
        CHECK((code_of(opened, kFencedText).find("smt_door_launch") != std::string_view::npos) == executes);
        // A managed form is made of the fenced text without doors, and its variable is none of the image's.
        CHECK_THAT(opened.choices.ptx.text, Contains("smt_fence_end") && !Contains("smt_door_launch"));
        CHECK(opened.choices.ptx.registers.empty());
        CHECK(opened.own.ptx == (executes ? std::string_view() : kFencedText));
        CHECK_FALSE(opened.uses_variables);
    }
}

// A second copy of the image, its managed form, would need them as well.
TEST_CASE("of a fenced image NVIDIA's tables are variables", "[fences]") {
    const std::string text = std::string(kFencedText) + R"(
.global .align 4 .b8 __cudart_i2opi_f[24] = {1};
.visible .entry sine()
{
    .reg .b64 %rd;
    .reg .b32 %r;
    mov.u64 %rd, __cudart_i2opi_f;
    ld.global.nc.u32 %r, [%rd];
    ret;
}
)";
    for (const bool fences : {false, true}) {
        const Opened opened = open_text(text, fences, true);
        CHECK(opened.problem.empty());
        CHECK((opened.uses_variables == fences && opened.unplaced == fences && opened.stays.empty()));
    }
}

TEST_CASE("an image that cannot be fenced is refused, with a reason", "[fences]") {
    CHECK_THAT(open_text(".version 8.0\n.target sm_61\n.address_size 64\n", true, false).problem,
               Contains("the tenant is fenced") && Contains("SMT_ISOLATION=strict"));
    CHECK_THAT(
        open_text(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { nonsense; }\n", true, false)
            .problem,
        Contains("the tenant is fenced"));
    CHECK(open_text(kFencedText, false, false).fenced.empty());
}
