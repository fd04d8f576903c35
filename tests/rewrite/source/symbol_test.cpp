// Names of managed kernels in a module.
#include <catch2/catch.hpp>

#include "rewriter/source/managed_symbol.h"

using smt::rewriter::source::managed_symbol;

TEST_CASE("names get a prefix and one more parameter", "[symbol]") {
    CHECK(managed_symbol("_Z4blurPfi", "blur") == "_Z8smt_blurPfiN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurPv", "blur") == "_Z8smt_blurPvN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurEPf", "blur") == "_ZN2ns8smt_blurEPfN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIfLi3EEvPT_", "blur") == "_Z8smt_blurIfLi3EEvPT_N3smt6LaunchE");
}

TEST_CASE("the word for no parameters goes", "[symbol]") {
    CHECK(managed_symbol("_Z4blurv", "blur") == "_Z8smt_blurN3smt6LaunchE");
    CHECK(managed_symbol("_ZN2ns4blurEv", "blur") == "_ZN2ns8smt_blurEN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIfEvv", "blur") == "_Z8smt_blurIfEvN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIFvvEEvv", "blur") == "_Z8smt_blurIFvvEEvN3smt6LaunchE");
}

TEST_CASE("C names", "[symbol]") {
    CHECK(managed_symbol("blur", "blur") == "smt_blur");
    CHECK(managed_symbol("other", "blur").empty());
    CHECK(managed_symbol("_Z5otherv", "blur").empty());
}

TEST_CASE("names that only the compiler knows", "[symbol]") {
    CHECK(managed_symbol("_ZN36_GLOBAL__N__322925fa_4_b_cu_ce2de4ca4blurEPi", "blur") ==
          "_ZN36_GLOBAL__N__322925fa_4_b_cu_ce2de4ca8smt_blurEPiN3smt6LaunchE");
    CHECK(managed_symbol("_Z4blurIZ4mainEUliE_EvT_Pi", "blur") ==
          "_Z8smt_blurIZ4mainEUliE_EvT_PiN3smt6LaunchE");
}
