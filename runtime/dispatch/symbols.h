// Names of managed forms: `smt_` before the kernel's own name, or `smt_single_` where a worker may run one
// block only, and smt::Launch as its last parameter; mangled as the compiler does.
#pragma once

#include <string>
#include <string_view>

namespace smt::runtime::dispatch {

// "" for a symbol that cannot have one: it is a managed form itself, or not a name that a compiler makes.
std::string managed_symbol(std::string_view symbol, bool single);

}  // namespace smt::runtime::dispatch
