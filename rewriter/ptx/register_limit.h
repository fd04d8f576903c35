// Holding kernels to a number of registers (.maxnreg).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace smt::ptx {

// By name of a kernel: registers of a thread.
using RegisterLimits = std::map<std::string, uint32_t>;

// The module with these limits. Of a kernel that says itself how many registers it may have the lower number
// counts. One that says how many of its blocks are to fit stays as it is, if ptxas listens to that: it says
// how large they are, too. A text that cannot be read comes back as it was.
std::string limit_registers(std::string_view text, const RegisterLimits& limits);

}  // namespace smt::ptx
