// The server's log: its stderr, one line a message, whatever programs put into it.
#pragma once

#include <string_view>

namespace smt::runtime::server {

void log_line(std::string_view text);

}  // namespace smt::runtime::server
