#include "tools/index/command_line.h"

#include <filesystem>
#include <optional>
#include <string_view>

namespace smt::tools::index {

namespace fs = std::filesystem;

namespace {

enum class Kind {
    kFolder,
    kMacro,
    kKept,
    kPtxas,
    kStandard,
    kCode,
    kClangCode,
    kOutput,
    kLanguage,
    kInclude,
    kSkipped
};

// With a value, in the same word or the next.
struct Spelling {
    std::string_view text;
    Kind kind;
    bool joined;                  // -Ifolder
    std::string_view nvrtc = {};  // its name there
};

// Longest first where one begins like another.
constexpr Spelling kValued[] = {
    {"--include-path", Kind::kFolder, false},
    {"--system-include", Kind::kFolder, false},
    {"-isystem", Kind::kFolder, true},
    {"-I", Kind::kFolder, true},
    {"--define-macro", Kind::kMacro, false, "-D"},
    {"-D", Kind::kMacro, true, "-D"},
    {"--undefine-macro", Kind::kMacro, false, "-U"},
    {"-U", Kind::kMacro, true, "-U"},
    {"--pre-include", Kind::kInclude, false},
    {"-include", Kind::kInclude, false},
    {"--std", Kind::kStandard, false},
    {"-std", Kind::kStandard, false},
    {"--generate-code", Kind::kCode, false},
    {"-gencode", Kind::kCode, false},
    {"--gpu-architecture", Kind::kCode, false},
    {"-arch", Kind::kCode, false},
    {"--gpu-code", Kind::kSkipped, false},
    {"-code", Kind::kSkipped, false},
    {"--cuda-gpu-arch", Kind::kClangCode, false},
    {"--offload-arch", Kind::kClangCode, false},
    {"--maxrregcount", Kind::kKept, false, "--maxrregcount="},
    {"-maxrregcount", Kind::kKept, false, "--maxrregcount="},
    {"--fmad", Kind::kKept, false, "--fmad="},
    {"-fmad", Kind::kKept, false, "--fmad="},
    {"--ftz", Kind::kKept, false, "--ftz="},
    {"-ftz", Kind::kKept, false, "--ftz="},
    {"--prec-div", Kind::kKept, false, "--prec-div="},
    {"-prec-div", Kind::kKept, false, "--prec-div="},
    {"--prec-sqrt", Kind::kKept, false, "--prec-sqrt="},
    {"-prec-sqrt", Kind::kKept, false, "--prec-sqrt="},
    {"--ptxas-options", Kind::kPtxas, false},
    {"-Xptxas", Kind::kPtxas, false},
    {"--output-file", Kind::kOutput, false},
    {"-o", Kind::kOutput, false},
    {"-x", Kind::kLanguage, false},
    {"--x", Kind::kLanguage, false},
    {"-Xcompiler", Kind::kSkipped, false},
    {"--compiler-options", Kind::kSkipped, false},
    {"-ccbin", Kind::kSkipped, false},
    {"--compiler-bindir", Kind::kSkipped, false},
    {"-MF", Kind::kSkipped, false},
    {"-MT", Kind::kSkipped, false},
};

// Without a value.
constexpr std::pair<std::string_view, std::string_view> kPlain[] = {
    {"--use_fast_math", "--use_fast_math"},
    {"-use_fast_math", "--use_fast_math"},
    {"--device-debug", "--device-debug"},
    {"-G", "--device-debug"},
    {"--generate-line-info", "--generate-line-info"},
    {"-lineinfo", "--generate-line-info"},
    {"--restrict", "--restrict"},
    {"-restrict", "--restrict"},
    {"--extra-device-vectorization", "--extra-device-vectorization"},
    {"-extra-device-vectorization", "--extra-device-vectorization"},
};
constexpr std::string_view kRelocatable[] = {
    "-dc",   "--device-c",       "-rdc=true", "--relocatable-device-code=true",
    "-dlto", "--dlink-time-opt", "-fgpu-rdc"};

class Reader {
public:
    Reader(const rewriter::source::CompileCommand& command, CommandLine& line)
        : command_(command), line_(line) {}

    bool read() {
        const std::vector<std::string>& words = command_.arguments;
        for (size_t at = 1; at < words.size(); ++at) {
            if (valued(words, at)) continue;
            for (const auto& [spelled, nvrtc] : kPlain)
                if (words[at] == spelled) line_.nvrtc.emplace_back(nvrtc);
            for (std::string_view each : kRelocatable)
                if (words[at] == each)
                    line_.refusal = "it is compiled to be linked with other device code (" + words[at] + ")";
            if (words[at].ends_with("extended-lambda")) line_.options.push_back(words[at]);
        }
        line_.file = absolute(command_.file);
        if (output_.empty()) output_ = command_.output;
        if (output_.empty()) output_ = fs::path(command_.file).stem().string() + ".o";
        line_.object = absolute(output_);
        const bool cuda = language_ == "cu" || language_ == "cuda" ||
                          (language_.empty() && fs::path(command_.file).extension() == ".cu");
        return cuda && runs_compiler();
    }

private:
    std::string absolute(const std::string& path) const {
        return (fs::path(command_.directory) / path).lexically_normal().string();
    }

    // Also behind ccache and the like.
    bool runs_compiler() const {
        for (const std::string& word : command_.arguments) {
            if (word.starts_with("-")) return false;
            const std::string name = fs::path(word).filename().string();
            if (name.starts_with("nvcc") || name.starts_with("clang")) return true;
        }
        return false;
    }

    bool valued(const std::vector<std::string>& words, size_t& at) {
        for (const Spelling& spelling : kValued) {
            const std::string& word = words[at];
            if (!word.starts_with(spelling.text)) continue;
            std::string value = word.substr(spelling.text.size());
            if (value.empty()) {
                if (at + 1 == words.size()) return true;
                value = words[++at];
            } else if (value[0] == '=') {
                value.erase(0, 1);
            } else if (!spelling.joined) {
                continue;
            }
            take(spelling, value);
            return true;
        }
        return false;
    }

    void take(const Spelling& spelling, const std::string& value) {
        switch (spelling.kind) {
            case Kind::kFolder:
                line_.options.push_back(
                    spelling.text.starts_with("-I") || spelling.text == "--include-path" ? "-I" : "-isystem");
                line_.options.push_back(absolute(value));
                line_.nvrtc.push_back("-I" + absolute(value));
                break;
            case Kind::kInclude:
                line_.options.insert(line_.options.end(), {"-include", value});
                break;
            case Kind::kMacro:
                line_.options.push_back(std::string(spelling.nvrtc) + value);
                line_.nvrtc.push_back(std::string(spelling.nvrtc) + value);
                break;
            case Kind::kStandard: {
                const std::string standard = value.starts_with("gnu") ? "c" + value.substr(3) : value;
                line_.options.push_back("-std=" + standard);
                line_.nvrtc.push_back("--std=" + standard);
                break;
            }
            case Kind::kKept:
                line_.nvrtc.push_back(std::string(spelling.nvrtc) + value);
                break;
            case Kind::kPtxas:
                line_.nvrtc.push_back("--ptxas-options=" + value);
                break;
            case Kind::kCode:
                take_codes(value);
                break;
            case Kind::kClangCode:
                line_.codes.emplace_back(value, "compute_" + value.substr(value.find('_') + 1));
                break;
            case Kind::kOutput:
                output_ = value;
                break;
            case Kind::kLanguage:
                language_ = value;
                break;
            case Kind::kSkipped:
                break;
        }
    }

    // "arch=compute_90,code=[sm_90,compute_90]", "sm_90"
    void take_codes(const std::string& value) {
        std::vector<std::string> names;
        for (size_t at = 0; at < value.size();) {
            const size_t begin = std::min(value.find("sm_", at), value.find("compute_", at));
            if (begin >= value.size()) break;
            const size_t end = std::min(value.find_first_of(",]\"' ", begin), value.size());
            names.push_back(value.substr(begin, end - begin));
            at = end;
        }
        if (names.empty()) return;
        const std::string base = "compute_" + names.front().substr(names.front().find('_') + 1);
        for (const std::string& name : names) line_.codes.emplace_back(name, base);
    }

    const rewriter::source::CompileCommand& command_;
    CommandLine& line_;
    std::string output_, language_;
};

}  // namespace

bool read_command_line(const rewriter::source::CompileCommand& command, const std::string& toolkit,
                       CommandLine& line) {
    if (!Reader(command, line).read()) return false;
    // A constexpr function without an execution space runs everywhere, which NVRTC calls the device.
    line.nvrtc.insert(line.nvrtc.begin(), {"--device-as-default-execution-space", "--device-int128"});
    line.nvrtc.insert(line.nvrtc.end(), {"-I" + toolkit + "/include", "-I" + toolkit + "/include/cccl"});
    return true;
}

}  // namespace smt::tools::index
