// Command lines of nvcc and Clang, as indexing reads them.
#include "tools/index/command_line.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace smt::tools::index;
using smt::rewriter::source::CompileCommand;

namespace {

bool has(const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

CommandLine read(std::vector<std::string> arguments, const std::string& file = "a/b.cu") {
    CommandLine line;
    const CompileCommand command{"/build", file, std::move(arguments), ""};
    REQUIRE(read_command_line(command, "/cuda", line));
    return line;
}

}  // namespace

TEST_CASE("a command line of nvcc becomes NVRTC's options, with absolute folders") {
    const CommandLine line = read({"/usr/bin/ccache",
                                   "/cuda/bin/nvcc",
                                   "-forward-unknown-to-host-compiler",
                                   "-DWIDTH=4",
                                   "-I",
                                   "../include",
                                   "-isystem=/opt/x",
                                   "--generate-code=arch=compute_80,code=[compute_80,sm_86]",
                                   "-gencode",
                                   "arch=compute_90,code=sm_90",
                                   "-std=gnu++20",
                                   "--use_fast_math",
                                   "-fmad=false",
                                   "-maxrregcount",
                                   "64",
                                   "-Xptxas",
                                   "-O1",
                                   "-Xcompiler",
                                   "-DHOST",
                                   "-G",
                                   "-x",
                                   "cu",
                                   "-c",
                                   "a/b.cu",
                                   "-o",
                                   "out/b.o"});
    CHECK(line.refusal.empty());
    CHECK(line.file == "/build/a/b.cu");
    CHECK(line.object == "/build/out/b.o");
    for (const char* word :
         {"-DWIDTH=4", "-I/include", "-I/opt/x", "--std=c++20", "--use_fast_math", "--fmad=false",
          "--maxrregcount=64", "--ptxas-options=-O1", "--device-debug", "-I/cuda/include"})
        CHECK(has(line.nvrtc, word));
    CHECK_FALSE(has(line.nvrtc, "-DHOST"));
    const std::vector<std::pair<std::string, std::string>> codes = {{"compute_80", "compute_80"},
                                                                    {"compute_80", "compute_80"},
                                                                    {"sm_86", "compute_80"},
                                                                    {"compute_90", "compute_90"},
                                                                    {"sm_90", "compute_90"}};
    CHECK(line.codes == codes);
}

TEST_CASE("an object that is not named stands beside its directory's others") {
    CHECK(read({"nvcc", "-c", "a/b.cu"}).object == "/build/b.o");
}

TEST_CASE("code that is to be linked is refused") {
    for (const char* option : {"-dc", "-rdc=true", "--relocatable-device-code=true", "-fgpu-rdc"})
        CHECK(read({"nvcc", option, "a/b.cu"}).refusal.find(option) != std::string::npos);
}

TEST_CASE("what compiles no CUDA is passed over") {
    CommandLine line;
    CHECK_FALSE(read_command_line({"/build", "a.cpp", {"c++", "-c", "a.cpp"}, ""}, "/cuda", line));
    CHECK_FALSE(read_command_line({"/build", "a.cu", {"cp", "a.cu", "b.cu"}, ""}, "/cuda", line));
    CHECK(read_command_line(
        {"/build", "a.cpp", {"clang++", "-x", "cuda", "a.cpp", "--cuda-gpu-arch=sm_90"}, ""}, "/cuda", line));
}
