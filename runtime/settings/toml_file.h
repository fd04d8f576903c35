// A config file as TOML, for the readers of this folder.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "runtime/journal/printable.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace smt::settings {

// Nothing: there is no such file, or it is none that can be used, and `problems` says why.
inline std::optional<toml::table> parse_file(const std::string& path, std::vector<std::string>& problems) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        if (errno != ENOENT && errno != ENOTDIR)
            problems.push_back(fmt::format("{}: {}", path, std::strerror(errno)));
        return std::nullopt;
    }
    std::string text;
    try {
        text.assign(std::istreambuf_iterator<char>(stream), {});
    } catch (const std::exception& problem) {  // it is a folder, for instance
        problems.push_back(fmt::format("{}: {}", path, problem.what()));
        return std::nullopt;
    }
    toml::parse_result result = toml::parse(text);
    if (!result) {
        const toml::parse_error& error = result.error();
        problems.push_back(fmt::format("{}:{}: {}", path, error.source().begin.line,
                                       runtime::journal::printable(error.description())));
        return std::nullopt;
    }
    return std::move(result).table();
}

inline std::string problem_at(const std::string& path, const toml::node& node, const std::string& what) {
    return fmt::format("{}:{}: {}", path, node.source().begin.line, what);
}

// As the environment would have it; empty: TOML's type is none that a setting has.
inline std::string text_of_node(const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (const auto* flag = node.as_boolean()) return flag->get() ? "1" : "0";
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    return "";
}

}  // namespace smt::settings
