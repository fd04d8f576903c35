#include "rewriter/ptx/register_limit.h"

#include <catch2/catch.hpp>

using namespace smt::ptx;
using Catch::Contains;

namespace {

std::string kernel(const std::string& directive) {
    return ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n" + directive +
           "{\n\tret;\n}\n";
}

}  // namespace

TEST_CASE("a kernel is held to a number of registers", "[ptx]") {
    CHECK_THAT(limit_registers(kernel(""), {{"k", 40}}), Contains(".maxnreg 40"));
    CHECK_THAT(limit_registers(kernel(".maxntid 256\n"), {{"k", 40}}),
               Contains(".maxnreg 40") && Contains(".maxntid 256"));
}

TEST_CASE("a kernel that says how many blocks are to fit stays as it is, and so does one that is not named",
          "[ptx]") {
    CHECK_THAT(limit_registers(kernel(".maxntid 256\n.minnctapersm 4\n"), {{"k", 40}}),
               !Contains(".maxnreg"));
    CHECK_THAT(limit_registers(kernel(""), {{"other", 40}}), !Contains(".maxnreg"));
}

TEST_CASE("of two numbers of registers the lower one counts", "[ptx]") {
    CHECK_THAT(limit_registers(kernel(".maxnreg 72\n"), {{"k", 40}}),
               Contains(".maxnreg 40") && !Contains("72"));
    CHECK_THAT(limit_registers(kernel(".maxnreg 32\n"), {{"k", 40}}),
               Contains(".maxnreg 32") && !Contains("40"));
    // ptxas does not listen to a number of blocks whose size it is not told.
    CHECK_THAT(limit_registers(kernel(".minnctapersm 4\n"), {{"k", 40}}), Contains(".maxnreg 40"));
}

TEST_CASE("a text that cannot be read is not limited", "[ptx]") {
    CHECK(limit_registers("nonsense", {{"k", 40}}) == "nonsense");
}
