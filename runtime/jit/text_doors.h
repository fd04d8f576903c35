// Doors for a device that executes PTX (rewriter/ptx/door.h), and which kernels have none on any device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/jit/opened.h"

namespace smt::runtime::jit {

// A PutDoors of PTX. Of a text that cannot be read the loader says what is wrong.
std::string put_doors_into_text(std::string_view text, std::vector<Door>& doors);

// Managed forms, by their names. A program's own kernel of such a name has no door, which does no harm.
std::string_view leave_managed_forms(std::string_view name);

}  // namespace smt::runtime::jit
