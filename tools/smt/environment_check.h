// Whether what the environment says to smt makes sense. Programs and servers take what does not for what nobody said.
#pragma once

#include <string>
#include <vector>

namespace smt::tools {

// One line for each variable of smt's whose value makes no sense: "SMT_SMS is 'lots', not a number from 0 to 4096".
std::vector<std::string> environment_problems();

// Variables that begin as smt's do and are none: misspelled ones.
std::vector<std::string> unknown_variables();

// Throws Failure with the first problem. Before a program or a server is started, which would go on without it, unseen.
void check_environment();

}  // namespace smt::tools
