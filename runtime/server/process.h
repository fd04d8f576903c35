// What a process inherits beside its environment: a server that a program started has the program's limits, niceness, processors
// and more, for as long as it lives and for every tenant.
#pragma once

#include <string>
#include <vector>

namespace smt::runtime::server {

// Sets back what can be: soft limits to the hard ones, niceness and scheduling class, processors and memory nodes, timer slack, umask,
// signals, OOM score. Before the first thread. Returns a line for each that the system does not allow, which needs privileges.
// What cannot be set back at all: the control group, namespaces, seccomp, hard limits.
std::vector<std::string> reset_process();

}  // namespace smt::runtime::server
