// Process attributes inherited from the program that started the server: resource limits, niceness, CPU
// affinity and more. Without a reset they would apply to all tenants for the server's lifetime.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace smt::runtime::server {

// Resets what can be reset: soft limits to the hard ones, niceness and scheduling class, CPUs and memory
// nodes, timer slack, umask, signals, OOM score. To be called before the first thread starts. Returns a line
// for each reset that the system denies for lack of privileges. Not resettable: the control group,
// namespaces, seccomp, hard limits.
std::vector<std::string> reset_process();

uint64_t file_limit();  // open files that this process may have

}  // namespace smt::runtime::server
