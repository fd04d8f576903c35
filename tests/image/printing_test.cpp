// Which kernels may print, where no compiler is needed to say it.
#include "runtime/image/printing.h"

#include <catch2/catch.hpp>

#include "tests/image/made.h"

namespace smt::image {
namespace {

constexpr Device kDevice{90};

const std::string kPrintingText = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func tells { .reg .b64 %a; .param .b64 p; .param .b32 q;
  call (q), vprintf, (p, p); ret; }
.func silent { ret; }
.alias told, tells;
.visible .entry says() { call tells; ret; }
.visible .entry says_by_alias() { call told; ret; }
.visible .entry says_by_pointer() { .reg .b64 %f;
  prototype: .callprototype _ ();
  call %f, prototype; ret; }
.visible .entry is_silent() { call silent; ret; }
)";

using Names = std::set<std::string, std::less<>>;

TEST_CASE("PTX: kernels that reach vprintf, by name or through a pointer", "[printing]") {
    const Printing printing = printing_kernels(kPrintingText, kDevice);
    CHECK_FALSE(printing.all);
    CHECK(printing.kernels == Names{"says", "says_by_alias", "says_by_pointer"});
    CHECK(printing.may("says"));
    CHECK_FALSE(printing.may("is_silent"));
}

TEST_CASE("a fatbin prints as the entry that the device runs", "[printing]") {
    CHECK(printing_kernels(fatbin({{1, 80, 0, kPrintingText}}), kDevice).kernels.size() == 3);
    CHECK(printing_kernels(fatbin({{1, 80, 0, kPrintingText}, {1, 90, 0, ".version 8.0\n.target sm_90\n"}}),
                           kDevice)
              .kernels.empty());
}

TEST_CASE("what cannot be read counts as printing, and the reason is told", "[printing]") {
    CHECK_FALSE(printing_kernels("no PTX, and the name is not in it", kDevice).all);
    const Printing text = printing_kernels("no PTX, and vprintf is in it", kDevice);
    CHECK(text.all);
    CHECK_FALSE(text.why.empty());
    CHECK(printing_kernels(fatbin({{1, 100, 0, kPrintingText}}), kDevice).all);  // nothing for the device
    CHECK(printing_kernels(fatbin({{2, 90, 0,
                                    "\x7f"
                                    "ELF"}}),
                           kDevice)
              .all);
    CHECK(printing_kernels(fatbin({{8, 90, 0, "link-time code"}}), kDevice).all);
}

}  // namespace
}  // namespace smt::image
