// Functions that the device itself provides: printf, malloc, free, assert.
#pragma once

#include <functional>
#include <string>

#include "runtime/device/simulated/exec/code.h"

namespace smt::runtime::device::simulated {

void run_builtin(Execution& x, Builtin builtin, const Call& call);

// printf's work. `next` gives the following argument, of 4 or 8 bytes; `text_at` the string at an
// address. False from either: the bytes cannot be read.
struct PrintSource {
    std::function<bool(uint32_t bytes, uint64_t* value)> next;
    std::function<bool(uint64_t address, std::string* text)> text_at;
};
bool format_print(const std::string& format, const PrintSource& source, std::string* out);

}  // namespace smt::runtime::device::simulated
