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

}  // namespace smt::runtime::server
