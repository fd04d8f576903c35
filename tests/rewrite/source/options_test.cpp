// NVRTC's and nvcc's options.
#include "rewriter/source/options.h"

#include <catch2/catch.hpp>

using smt::rewriter::source::read_options;
using smt::rewriter::source::Settings;
using Strings = std::vector<std::string>;

TEST_CASE("both spellings of an option", "[options]") {
    const Strings wanted = {"-I", "a", "-D", "X=1", "-U", "Y", "-include", "b.h"};
    CHECK(read_options({"-Ia", "-DX=1", "-UY", "-include", "b.h"}).clang == wanted);
    CHECK(
        read_options({"--include-path=a", "--define-macro", "X=1", "--undefine-macro=Y", "--pre-include=b.h"})
            .clang == wanted);
    CHECK(read_options({"-I", "a", "-D", "X=1", "-U", "Y", "-include=b.h"}).clang == wanted);
    CHECK(read_options({"-I a", "-D X=1", "-U Y", "-include", "b.h"}).clang == wanted);
}

TEST_CASE("architectures", "[options]") {
    CHECK(read_options({}).processor == "sm_90");
    CHECK(read_options({"-arch=sm_75"}).processor == "sm_75");
    const Settings virtual_one = read_options({"--gpu-architecture", "compute_100"});
    CHECK(virtual_one.processor == "sm_100");
    CHECK(virtual_one.architecture == 1000);
    CHECK(read_options({"-gencode", "arch=compute_80,code=[sm_80,sm_90]"}).architecture == 800);
    CHECK(read_options({"-arch=sm_90a"}).processor == "sm_90a");
    CHECK(read_options({"-arch=native"}).processor == "sm_90");
    CHECK(read_options({"-arch"}).processor == "sm_90");
}

TEST_CASE("what does not matter is skipped, with its value", "[options]") {
    const Settings settings = read_options({"-O3", "-Xcompiler", "-DNO", "-Xptxas=-v", "-lineinfo",
                                            "-default-device", "file.cu", "-std=c++20", "--extended-lambda"});
    CHECK(settings.clang.empty());
    CHECK(settings.standard == "c++20");
    CHECK(settings.extended_lambda);
}
