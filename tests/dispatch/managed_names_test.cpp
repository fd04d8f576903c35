#include "rewriter/device/managed_names.h"

#include <catch2/catch.hpp>

using smt::managed_symbol;
using enum smt::Reuse;

TEST_CASE("a managed form is named after its kernel", "[names]") {
    CHECK(managed_symbol("saxpy", kAlways) == "smt_saxpy");
    CHECK(managed_symbol("saxpy", kNever) == "smt_single_saxpy");
    CHECK(managed_symbol("smt_saxpy", kAlways) == "smt_smt_saxpy");
    CHECK(managed_symbol("_Z4blurPfi", kByWarps) == "_Z14smt_warps_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurPfi", kAlways) == "_Z8smt_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurPv", kAlways) == "_Z8smt_blurPvN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurPfi", kNever) == "_Z15smt_single_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurEPf", kAlways) == "_ZN2ns8smt_blurEPfN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIfLi3EEvPT_", kAlways) == "_Z8smt_blurIfLi3EEvPT_N3smt6LaunchE");
}

TEST_CASE("no parameters are not a parameter of type void", "[names]") {
    CHECK(managed_symbol("_Z4blurv", kAlways) == "_Z8smt_blurN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurEv", kAlways) == "_ZN2ns8smt_blurEN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIfEvv", kAlways) == "_Z8smt_blurIfEvN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurIfEEvv", kAlways) == "_ZN2ns8smt_blurIfEEvN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIFvvEEvv", kAlways) == "_Z8smt_blurIFvvEEvN3smt6LaunchE");
}

TEST_CASE("names that only the compiler knows", "[names]") {
    CHECK(managed_symbol("_ZN36_GLOBAL__N__322925fa_4_b_cu_ce2de4ca4blurEPi", kAlways) ==
          "_ZN36_GLOBAL__N__322925fa_4_b_cu_ce2de4ca8smt_blurEPiN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIZ4mainEUliE_EvT_Pi", kAlways) ==
          "_Z8smt_blurIZ4mainEUliE_EvT_PiN3smt6LaunchE");
}

TEST_CASE("what has no managed form has no name for it", "[names]") {
    CHECK(managed_symbol("", kAlways).empty());
    CHECK(managed_symbol("_Z8smt_blurPfiN3smt6LaunchE", kAlways).empty());
    CHECK(managed_symbol("_Zoops", kAlways).empty());
    CHECK(managed_symbol("_Z99x", kAlways).empty());
}
