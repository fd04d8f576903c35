// Whether what the environment and the config files say to smt makes sense.
#pragma once

#include <string>

namespace smt::tools {

// Before a program or a server is started. Throws Failure with a line for each value that is wrong: a default
// in its place would go unseen. Prints a line on stderr for each variable SMT_* that is no setting; `command`
// begins it: "smt run".
void check_environment(const std::string& command);

}  // namespace smt::tools
