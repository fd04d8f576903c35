// Numbers of a request's query.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/settings/table.h"
#include "tools/http/endpoint.h"

namespace smt::tools::ui {

// Nothing: it is not there, or no number.
inline std::optional<uint64_t> number_in(const http::Fields& query, const char* name) {
    const auto found = query.find(name);
    uint64_t number = 0;
    if (found == query.end() || found->second.empty() ||
        found->second.find_first_not_of("0123456789") != std::string::npos ||
        !settings::read_number(found->second, 0, UINT64_MAX, &number))
        return std::nullopt;
    return number;
}

}  // namespace smt::tools::ui
