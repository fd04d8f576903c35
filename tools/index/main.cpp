// smt-index: the sources of a build, for the server. `smt index` becomes this program.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/jit/toolkit.h"
#include "runtime/protocol/environment.h"
#include "tools/index/extraction.h"
#include "tools/index/indexer.h"

namespace {

using namespace smt::tools::index;
namespace fs = std::filesystem;
namespace jit = smt::runtime::jit;
namespace source = smt::rewriter::source;

constexpr int kFailure = 1, kMisuse = 2;
using Arguments = std::vector<std::string>;

int complain(int code, const std::string& what) {
    fmt::print(stderr, "smt index: {}{}\n", what, code == kMisuse ? " (see smt index --help)" : "");
    return code;
}

std::string toolkit() {
    const char* home = std::getenv(smt::environment::kCudaHome);
    return home && *home ? home : smt::runtime::jit::find_toolkit();
}

std::string no_toolkit(const std::string& looked) {
    return fmt::format("no CUDA toolkit in {}: set CUDA_HOME", looked.empty() ? "/usr/local/cuda" : looked);
}

void say(const std::string& line) {
    if (!line.starts_with("source "))
        fmt::print(stderr, "smt index: {}\n", line);  // those are told file by file
}

int index_build(const std::string& folder) {
    std::string problem;
    const auto commands = source::read_compile_commands(folder + "/compile_commands.json", problem);
    if (!problem.empty())
        return complain(kFailure, problem + " (CMake writes it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)");
    const jit::Settings settings = jit::read_settings(jit::own_folder());
    if (settings.compiler.empty())
        return complain(kFailure, "there is no smt-compile in " + jit::own_folder());
    if (settings.cache_folder.empty())
        return complain(kFailure, "there is no folder for the index: neither SMT_CACHE_DIR nor HOME is set");
    jit::SourceIndex index(settings.cache_folder, say);
    jit::Service service(settings, say);
    Indexer indexer(toolkit(), index, service);
    size_t files = 0, indexed = 0, kernels = 0, managed = 0;
    for (const source::CompileCommand& command : commands) {
        const Outcome outcome = indexer.index(command);
        if (!outcome.cuda) continue;
        fmt::print("{}: {}\n", command.file, outcome.text);
        std::fflush(stdout);
        ++files;
        indexed += outcome.indexed;
        kernels += outcome.indexed ? outcome.kernels : 0;
        managed += outcome.managed;
    }
    fmt::print("{} CUDA files, {} indexed, {} of their {} kernels managed; in {}\n", files, indexed, managed,
               kernels, index.folder());
    return files != 0 && indexed == 0 ? kFailure : 0;
}

jit::SourceIndex open_index() { return {jit::cache_folder(), say}; }

int list() {
    jit::SourceIndex index = open_index();
    const std::vector<jit::Indexed> all = index.list();
    for (const jit::Indexed& one : all) {
        std::string codes;
        for (const jit::Indexed::Variant& variant : one.variants)
            for (const std::string& code : variant.codes) codes += (codes.empty() ? "" : ", ") + code;
        fmt::print("{}  {}\n", one.variants.empty() ? "" : one.variants.front().source.name, codes);
    }
    fmt::print("{} images, in {}\n", all.size(), index.folder());
    return 0;
}

int forget() {
    jit::SourceIndex index = open_index();
    fmt::print("{} bytes removed from {}\n", index.clear(), index.folder());
    return 0;
}

int show(const Arguments& arguments) {
    if (arguments.size() < 2 || (arguments.size() > 2 && arguments[2] != "--"))
        return complain(kMisuse, "--show takes a file, and flags behind --");
    source::Input input;
    input.name = arguments[1];
    input.dialect = source::Dialect::kNvcc;
    if (arguments.size() > 2) input.options.assign(arguments.begin() + 3, arguments.end());
    input.toolkit = toolkit();
    const source::Extract extract = extract_here(input, nullptr);
    if (!extract.error.empty()) return complain(kFailure, extract.error);
    return std::fwrite(extract.text.data(), 1, extract.text.size(), stdout) == extract.text.size() ? 0
                                                                                                   : kFailure;
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments(argv + (argc > 0), argv + argc);
    if (arguments.empty()) return complain(kMisuse, "which folder?");
    if (arguments[0] == "--show") return show(arguments);
    if (arguments.size() > 1) return complain(kMisuse, "it takes one folder");
    if (arguments[0] == "--list") return list();
    if (arguments[0] == "--forget") return forget();
    if (arguments[0].starts_with("-")) return complain(kMisuse, "unknown option '" + arguments[0] + "'");
    if (!fs::exists(toolkit() + "/include/cuda_runtime.h")) return complain(kFailure, no_toolkit(toolkit()));
    return index_build(arguments[0]);
}
