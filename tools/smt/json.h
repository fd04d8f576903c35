// JSON for output.
#pragma once

#include <string>
#include <string_view>

namespace smt::tools {

// With its quotes. What is no UTF-8 (a tenant's name is whatever bytes it was given) becomes U+FFFD.
std::string json_string(std::string_view text);

}  // namespace smt::tools
