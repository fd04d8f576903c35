// NVRTC's and nvcc's options, as far as they matter for parsing.
#include "rewriter/source/options.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace smt::rewriter::source {
namespace {

enum class Kind {
    kInclude,
    kSystemInclude,
    kDefine,
    kUndefine,
    kPreInclude,
    kStandard,
    kArchitecture,
    kSkipped
};

struct Spelling {
    std::string_view text;
    Kind kind;
    bool joined;  // -Ifolder
};

// Longest first where one begins like another.
constexpr Spelling kSpellings[] = {
    {"--include-path", Kind::kInclude, false},
    {"--system-include", Kind::kSystemInclude, false},
    {"-isystem", Kind::kSystemInclude, true},
    {"--define-macro", Kind::kDefine, false},
    {"--undefine-macro", Kind::kUndefine, false},
    {"--pre-include", Kind::kPreInclude, false},
    {"-include", Kind::kPreInclude, false},
    {"--std", Kind::kStandard, false},
    {"-std", Kind::kStandard, false},
    {"--gpu-architecture", Kind::kArchitecture, false},
    {"-arch", Kind::kArchitecture, false},
    {"--generate-code", Kind::kArchitecture, false},
    {"-gencode", Kind::kArchitecture, false},
    {"-I", Kind::kInclude, true},
    {"-D", Kind::kDefine, true},
    {"-U", Kind::kUndefine, true},
    {"-Xcompiler", Kind::kSkipped, false},
    {"--compiler-options", Kind::kSkipped, false},
    {"-Xptxas", Kind::kSkipped, false},
    {"--ptxas-options", Kind::kSkipped, false},
};

struct Option {
    Kind kind;
    std::string value;
};

// The option at this place, and past it. A value stands after "=", right behind, or in the next argument.
std::optional<Option> next_option(const std::vector<std::string>& options, size_t& at) {
    const std::string& option = options[at++];
    for (const Spelling& spelling : kSpellings) {
        if (!option.starts_with(spelling.text)) continue;
        std::string rest = option.substr(spelling.text.size());
        if (rest.empty()) {
            if (at == options.size()) return std::nullopt;
            return Option{spelling.kind, options[at++]};
        }
        if (rest[0] == '=') return Option{spelling.kind, rest.substr(1)};
        if (spelling.joined)
            return Option{spelling.kind, rest.substr(std::min(rest.find_first_not_of(' '), rest.size()))};
    }
    return std::nullopt;
}

// "compute_90", "sm_100a", "arch=compute_75,code=[sm_75,sm_90]": the first number counts.
void set_architecture(Settings& settings, const std::string& value) {
    size_t at = value.find("compute_");
    at = at == std::string::npos ? value.find("sm_") : at;
    if (at == std::string::npos) return;
    at = value.find('_', at) + 1;
    size_t end = at;
    while (end < value.size() && std::isalnum(static_cast<unsigned char>(value[end]))) ++end;
    const std::string number = value.substr(at, end - at);
    const int version = std::atoi(number.c_str());
    if (version < 50 || version > 999) return;
    settings.processor = "sm_" + number;
    settings.architecture = version * 10;
}

}  // namespace

Settings read_options(const std::vector<std::string>& options) {
    Settings settings;
    for (size_t at = 0; at < options.size();) {
        const std::string& whole = options[at];
        if (whole.ends_with("extended-lambda")) settings.extended_lambda = true;
        std::optional<Option> option = next_option(options, at);
        if (!option) continue;
        auto pass = [&](const char* name) {
            settings.clang.insert(settings.clang.end(), {name, option->value});
        };
        switch (option->kind) {
            case Kind::kInclude:
                pass("-I");
                break;
            case Kind::kSystemInclude:
                pass("-isystem");
                break;
            case Kind::kDefine:
                pass("-D");
                break;
            case Kind::kUndefine:
                pass("-U");
                break;
            case Kind::kPreInclude:
                pass("-include");
                break;
            case Kind::kStandard:
                settings.standard = option->value;
                break;
            case Kind::kArchitecture:
                set_architecture(settings, option->value);
                break;
            case Kind::kSkipped:
                break;
        }
    }
    return settings;
}

}  // namespace smt::rewriter::source
