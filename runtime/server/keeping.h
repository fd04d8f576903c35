// The server's keeper: the process that tenants' device memory belongs to (runtime/keeper).
#pragma once

#include <string>

namespace smt::runtime::device {
class Device;
}

namespace smt::runtime::server {

// Starts smt-keeper, if SMT_KEEPER says so; before the first session. A line for the log; empty: none is
// wanted. If it does not start, tenants' memory is the server's own.
std::string start_keeper(device::Device& device);
std::string line_about_keeper(int pid);
// Whether SMT_KEEPER asks for a process that takes over (takeover/README.md).
bool takeover_wanted();

}  // namespace smt::runtime::server
