// Commands that are programs of their own, because they link what smt does not: this process becomes them.
#pragma once

#include <string>

#include "tools/smt/command.h"

namespace smt::tools {

// `where`: where it is built, for the Failure that says that it is not there. Throws Failure; does not
// return.
[[noreturn]] void become(const std::string& name, const Arguments& arguments, const std::string& where);

}  // namespace smt::tools
