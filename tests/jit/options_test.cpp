#include "runtime/jit/options.h"

#include <catch2/catch.hpp>

using namespace smt::runtime::jit;
using Texts = std::vector<std::string>;

TEST_CASE("options that write files are dropped, all others kept") {
    const Texts plain = {"-arch=sm_90", "--std=c++17", "-DNAME=-I",         "-lineinfo",  "-Ifolder",
                         "-I",          "folder",      "--pre-include=x.h", "-rdc=false", "x"};
    CHECK(prepare_options(plain).kept == plain);
    CHECK(prepare_options({"--time=/tmp/t", "-fdevice-time-trace=/tmp/t", "--pch", "--create-pch=/tmp/p"})
              .kept.empty());
}

TEST_CASE("what is compiled to be linked is refused") {
    for (const char* option : {"-dc", "--device-c", "-rdc=true", "--relocatable-device-code=true", "-dlto"}) {
        INFO(option);
        CHECK(!prepare_options({option}).refusal.empty());
    }
    CHECK(prepare_options({"-rdc=false", "-DX=true"}).refusal.empty());
}

TEST_CASE("architectures are recognised") {
    CHECK(is_architecture("-arch=sm_90"));
    CHECK(is_architecture("--gpu-architecture=compute_90"));
    CHECK(!is_architecture("-DARCH=sm_90"));
}
