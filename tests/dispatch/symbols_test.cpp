#include <catch2/catch.hpp>

#include "runtime/dispatch/symbols.h"

using smt::runtime::dispatch::managed_symbol;

TEST_CASE("a managed form is named after its kernel", "[dispatch]") {
    CHECK(managed_symbol("saxpy", smt::Reuse::kAlways) == "smt_saxpy");
    CHECK(managed_symbol("saxpy", smt::Reuse::kNever) == "smt_single_saxpy");
    CHECK(managed_symbol("_Z4blurPfi", smt::Reuse::kByWarps) == "_Z14smt_warps_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurPfi", smt::Reuse::kAlways) == "_Z8smt_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurPfi", smt::Reuse::kNever) == "_Z15smt_single_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurEPf", smt::Reuse::kAlways) == "_ZN2ns8smt_blurEPfN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIfLi3EEvPT_", smt::Reuse::kAlways) == "_Z8smt_blurIfLi3EEvPT_N3smt6LaunchE");
}

TEST_CASE("no parameters are not a parameter of type void", "[dispatch]") {
    CHECK(managed_symbol("_Z4blurv", smt::Reuse::kAlways) == "_Z8smt_blurN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurEv", smt::Reuse::kAlways) == "_ZN2ns8smt_blurEN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIfEvv", smt::Reuse::kAlways) == "_Z8smt_blurIfEvN3smt6LaunchE");
}

TEST_CASE("what has no managed form has no name for it", "[dispatch]") {
    CHECK(managed_symbol("", smt::Reuse::kAlways).empty());
    CHECK(managed_symbol("smt_saxpy", smt::Reuse::kAlways).empty());
    CHECK(managed_symbol("_Z8smt_blurPfiN3smt6LaunchE", smt::Reuse::kAlways).empty());
    CHECK(managed_symbol("_Zoops", smt::Reuse::kAlways).empty());
    CHECK(managed_symbol("_Z99x", smt::Reuse::kAlways).empty());
}
