// Makes names and lines safe for a terminal or a log: programs choose the names of tenants and kernels, in
// any bytes.
#pragma once

#include <string>
#include <string_view>

namespace smt::runtime::journal {

// Line ends and tabs become spaces. Other control characters (escape sequences begin with one), characters
// that change the writing direction, and invalid UTF-8 become '?'.
std::string printable(std::string_view text);

}  // namespace smt::runtime::journal
