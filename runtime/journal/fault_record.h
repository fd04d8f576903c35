// The last fault that ended a server of a key, in a file beside its journal: `smt status` shows it, and the next server enables core
// dumps after it, so that a fault that comes again is known by its kernel.
//
//   time, in seconds since 1970 | newline | what is said of it | newline
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace smt::runtime::journal {

struct LastFault {
    std::chrono::seconds ago{0};
    std::string text;   // one line
};

void write_fault(const std::string& path, const std::string& text);   // best effort
// Nothing: there was none, or the file is not one of these.
std::optional<LastFault> read_fault(const std::string& path);

}  // namespace smt::runtime::journal
