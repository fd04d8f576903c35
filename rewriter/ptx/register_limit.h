// Holding kernels to a number of registers (.maxnreg).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace smt::ptx {

// By name of a kernel: registers of a thread.
using RegisterLimits = std::map<std::string, uint32_t>;

// The module with these limits. A kernel that says itself how many of its blocks are to fit, or how many
// registers it may have, stays as it is. A text that cannot be read comes back as it was.
std::string limit_registers(std::string_view text, const RegisterLimits& limits);

}  // namespace smt::ptx
