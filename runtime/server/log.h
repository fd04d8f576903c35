// The server's log: stderr, one line per message, also if a program's text contains line breaks. Any thread.
#pragma once

#include <string_view>

namespace smt::runtime::server {

void log_line(std::string_view text);

}  // namespace smt::runtime::server
