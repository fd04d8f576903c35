// The last fault that ended a server, by server key, in a file beside its journal. `smt status` shows it. The
// next server enables core dumps after it, so that the kernel of a repeated fault can be identified.
//
//   seconds since 1970 | newline | description of the fault | newline
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace smt::runtime::journal {

struct LastFault {
    std::chrono::seconds ago{0};
    std::string text;  // one line
};

// Line ends in `text` become spaces. Errors are ignored.
void write_fault(const std::string& path, const std::string& text);
// Nothing: there was no fault, or the file is malformed.
std::optional<LastFault> read_fault(const std::string& path);

}  // namespace smt::runtime::journal
