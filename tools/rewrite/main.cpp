// smt-rewrite: the source rewriter on one file. `smt rewrite` becomes this program.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "rewriter/source/rewrite.h"
#include "runtime/jit/toolkit.h"

namespace {

using smt::rewriter::source::Dialect;
using smt::rewriter::source::Input;
using smt::rewriter::source::Output;
using smt::rewriter::source::RewrittenKernel;

constexpr int kFailure = 1, kMisuse = 2;

struct CommandLine {
    Input input;
    std::string output;  // empty: standard output
    bool symbols = false;
};

int complain(int code, const std::string& what) {
    fmt::print(stderr, "smt rewrite: {}{}\n", what, code == kMisuse ? " (see smt rewrite --help)" : "");
    return code;
}

// What is wrong with the command line; nothing: it is in `line`.
std::optional<std::string> read_command_line(const std::vector<std::string>& arguments, CommandLine& line) {
    for (size_t at = 0; at < arguments.size(); ++at) {
        const std::string& argument = arguments[at];
        if (argument == "--") {
            line.input.options.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                      arguments.end());
            break;
        }
        if (argument == "--nvrtc") {
            line.input.dialect = Dialect::kNvrtc;
        } else if (argument == "--symbols") {
            line.symbols = true;
        } else if (argument.starts_with("--name=")) {
            line.input.name_expressions.push_back(argument.substr(std::strlen("--name=")));
        } else if (argument == "-o" || argument == "--name") {
            if (++at == arguments.size()) return argument + " needs a value";
            if (argument == "-o")
                line.output = arguments[at];
            else
                line.input.name_expressions.push_back(arguments[at]);
        } else if (argument.starts_with("-") && argument != "-") {
            return "unknown option '" + argument + "'; the compiler's options stand after --";
        } else if (!line.input.name.empty()) {
            return "two files, '" + line.input.name + "' and '" + argument + "'";
        } else {
            line.input.name = argument;
        }
    }
    if (line.input.name.empty()) return "which file?";
    return std::nullopt;
}

// Empty: it is in `text`.
std::string read_file(const std::string& name, std::string& text) {
    std::error_code error;
    if (std::filesystem::is_directory(name, error)) return name + " is a folder";
    std::ifstream file(name, std::ios::binary);
    if (!file) return fmt::format("{}: {}", name, std::strerror(errno));
    text.assign(std::istreambuf_iterator<char>(file), {});
    return file.bad() ? name + " cannot be read" : "";
}

std::string toolkit() {
    const char* home = std::getenv("CUDA_HOME");
    return home && *home ? home : smt::runtime::jit::find_toolkit();
}

std::string no_toolkit(const std::string& looked) {
    return fmt::format("no CUDA toolkit in {}: set CUDA_HOME", looked.empty() ? "/usr/local/cuda" : looked);
}

bool write_text(const std::string& text, const std::string& name) {
    std::FILE* to = name.empty() ? stdout : std::fopen(name.c_str(), "wb");
    if (!to) return false;
    const bool whole = std::fwrite(text.data(), 1, text.size(), to) == text.size();
    return (name.empty() ? std::fflush(to) : std::fclose(to)) == 0 && whole;
}

void report(const std::string& file, const RewrittenKernel& kernel, bool symbols) {
    std::string verdict = "managed";
    if (kernel.managed.empty())
        verdict = "refused: " + kernel.reason;
    else if (kernel.reuse == smt::Reuse::kNever)
        verdict += ", one block a worker (threads return ahead of a barrier)";
    else if (kernel.reuse == smt::Reuse::kByWarps)
        verdict +=
            ", where blocks are a whole number of warps wide (warps return ahead of a shuffle or the like)";
    const std::string place = kernel.line ? fmt::format("{}:{}", file, kernel.line) : file;  // 0: in a header
    fmt::print(stderr, "{}: {}: {}\n", place, kernel.name, verdict);
    if (symbols) fmt::print(stderr, "    {} {}\n", kernel.symbol, kernel.managed);
}

}  // namespace

int main(int argc, char** argv) {
    CommandLine line;
    line.input.dialect = Dialect::kNvcc;
    if (auto mistake = read_command_line({argv + (argc > 0), argv + argc}, line))
        return complain(kMisuse, *mistake);
    line.input.toolkit = toolkit();
    if (!std::filesystem::exists(line.input.toolkit + "/include/cuda_runtime.h"))
        return complain(kFailure, no_toolkit(line.input.toolkit));
    if (std::string problem = read_file(line.input.name, line.input.text); !problem.empty())
        return complain(kFailure, problem);

    const Output output = rewrite(line.input);
    if (!output.error.empty()) return complain(kFailure, output.error);
    for (const RewrittenKernel& kernel : output.kernels) report(line.input.name, kernel, line.symbols);
    if (!write_text(output.text, line.output))
        return complain(kFailure, fmt::format("cannot write {}: {}",
                                              line.output.empty() ? "standard output" : line.output,
                                              std::strerror(errno)));
    return 0;
}
