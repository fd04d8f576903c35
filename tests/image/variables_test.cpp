#include "runtime/image/variables.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/image/made.h"

namespace smt::image {
namespace {

constexpr char kVariablesText[] = R"(
.version 8.0
.target sm_90   // .global .b8 comment[4096];
.address_size 64
/* .global .b8 comment[4096]; */
.visible .global .align 4 .u32 counter = 7;
.global .align 8 .b8 table[0x100][2] = {1, 2, {3}};
.visible .global .v4 .f32 vectors[10];
.extern .global .b8 elsewhere[4096];
.visible .global .attribute(.managed) .align 4 .u32 on_the_host;
.const .align 4 .b8 constants[4096];
.shared .align 4 .b8 shared[4096];
.file 1 "a { name"
.visible .entry kernel(.param .u64 p) {
    .reg .u64 %rd<4>;
    .shared .b8 more[4096];
    ld.global.u64 %rd1, [%rd2];
}
.global .b8 behind[100];
)";

TEST_CASE("global variables of PTX are summed up, without what stands in bodies", "[variables]") {
    CHECK(variable_bytes_of_ptx(kVariablesText) == 4 + 512 + 160 + 100);
    CHECK(variable_bytes_of_ptx("") == 0);
    CHECK(variable_bytes_of_ptx(".global .b64 a[0xffffffffffffffff];") == ~uint64_t{0});
    CHECK(variable_bytes_of_ptx(".global .b8 cut[") == 0);
    CHECK(variable_bytes_of_ptx(".global .b8 cut[;") == 1);
    CHECK(variable_bytes_of_ptx("\"") == 0);
    CHECK(variable_bytes_of_ptx("/*") == 0);
}

TEST_CASE("an image's variables are those of the entry that the device loads", "[variables]") {
    const std::string image = fatbin({{1, 80, 0, ".version 8.0\n.target sm_80\n.global .b8 a[100];\n"},
                                      {1, 90, 0, ".version 8.0\n.target sm_90\n.global .b8 a[300];\n"}});
    CHECK(variable_bytes(image, {90, true, true}) == 300);
    CHECK(variable_bytes(image, {80, true, true}) == 100);
    CHECK(variable_bytes(image, {70, true, true}) == 0);
    CHECK(variable_bytes("no image", {90, true, true}) == 0);
}

TEST_CASE("a cubin's variables are its sections of that name", "[variables]") {
    CHECK(variable_bytes_of_cubin("no cubin") == 0);
}

}  // namespace
}  // namespace smt::image
