#include "runtime/jit/options.h"

#include <array>
#include <string_view>

namespace smt::runtime::jit {

namespace {

// Files of times, and compiled headers: they are written, or come from a run of the program's own.
constexpr std::array kDropped = {
    "time",         "fdevice-time-trace",          "pch", "create-pch", "use-pch", "pch-dir", "pch-verbose",
    "pch-messages", "instantiate-templates-in-pch"};
// What a program loads after such a compile is what a linker makes of it.
constexpr std::array kRelocatable = {"relocatable-device-code", "rdc",  "device-c", "dc",
                                     "dlink-time-opt",          "dlto", "ltoir",    "optix-ir"};

// "--include-path=a" is include-path with the value "=a"; "-dc" is dc.
struct Parts {
    std::string_view name;
    std::string_view value;  // with its '='
};

Parts split(std::string_view option) {
    if (option.starts_with("--"))
        option.remove_prefix(2);
    else if (option.starts_with("-"))
        option.remove_prefix(1);
    else
        return {};
    const size_t equals = option.find('=');
    if (equals == option.npos) return {option, {}};
    return {option.substr(0, equals), option.substr(equals)};
}

template <size_t N>
bool among(const std::array<const char*, N>& names, std::string_view name) {
    for (const char* each : names) {
        if (name == each) return true;
    }
    return false;
}

}  // namespace

Options prepare_options(const std::vector<std::string>& options) {
    Options result;
    for (const std::string& option : options) {
        const Parts parts = split(option);
        if (among(kRelocatable, parts.name) && parts.value != "=false") {
            result.refusal = "it is compiled to be linked (" + option + ")";
        } else if (!among(kDropped, parts.name)) {
            result.kept.push_back(option);
        }
    }
    return result;
}

bool is_architecture(const std::string& option) {
    const std::string_view name = split(option).name;
    return name == "gpu-architecture" || name == "arch";
}

std::string architecture_in(const std::vector<std::string>& options) {
    constexpr std::array kMachineCode = {"maxrregcount", "ptxas-options", "Xptxas", "device-debug", "G"};
    std::string architecture;
    for (const std::string& option : options) {
        const Parts parts = split(option);
        if (among(kMachineCode, parts.name)) return "";
        if (is_architecture(option) && !parts.value.empty()) architecture = parts.value.substr(1);
    }
    return architecture;
}

}  // namespace smt::runtime::jit
