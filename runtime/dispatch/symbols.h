// Names of managed forms: what reuse.h says before the kernel's own name, and smt::Launch as its last parameter;
// mangled as the compiler does.
#pragma once

#include <string>
#include <string_view>

#include "rewriter/device/reuse.h"

namespace smt::runtime::dispatch {

// "" for a symbol that cannot have one: it is a managed form itself, or not a name that a compiler makes.
std::string managed_symbol(std::string_view symbol, Reuse reuse);

}  // namespace smt::runtime::dispatch
