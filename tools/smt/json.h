// Just enough JSON for output.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace smt::tools {

inline std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (static_cast<unsigned char>(c) < 0x20)
            out += fmt::format("\\u{:04x}", c);
        else
            out += c;
    }
    return out + '"';
}

}  // namespace smt::tools
