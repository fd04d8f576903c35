// Names and lines that a terminal or a log may show as they are: tenants and kernels are named by programs, in any bytes.
#pragma once

#include <string>
#include <string_view>

namespace smt::runtime::journal {

// Line ends and tabs become spaces. Other control characters (escape sequences begin with one), what turns the direction of
// writing round, and what is no UTF-8 become '?'.
std::string printable(std::string_view text);

}  // namespace smt::runtime::journal
