#include <catch2/catch.hpp>

#include "runtime/dispatch/symbols.h"

using smt::runtime::dispatch::managed_symbol;

TEST_CASE("a managed form is named after its kernel", "[dispatch]") {
    CHECK(managed_symbol("saxpy", false) == "smt_saxpy");
    CHECK(managed_symbol("saxpy", true) == "smt_single_saxpy");
    CHECK(managed_symbol("_Z4blurPfi", false) == "_Z8smt_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurPfi", true) == "_Z15smt_single_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurEPf", false) == "_ZN2ns8smt_blurEPfN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIfLi3EEvPT_", false) == "_Z8smt_blurIfLi3EEvPT_N3smt6LaunchE");
}

TEST_CASE("no parameters are not a parameter of type void", "[dispatch]") {
    CHECK(managed_symbol("_Z4blurv", false) == "_Z8smt_blurN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurEv", false) == "_ZN2ns8smt_blurEN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIfEvv", false) == "_Z8smt_blurIfEvN3smt6LaunchE");
}

TEST_CASE("what has no managed form has no name for it", "[dispatch]") {
    CHECK(managed_symbol("", false).empty());
    CHECK(managed_symbol("smt_saxpy", false).empty());
    CHECK(managed_symbol("_Z8smt_blurPfiN3smt6LaunchE", false).empty());
    CHECK(managed_symbol("_Zoops", false).empty());
    CHECK(managed_symbol("_Z99x", false).empty());
}
