// The files of strict tenants' servers (runtime/protocol/server_key.h) that have ended. Their logs and
// journals stay, for `smt log`, until there are too many: there may be a new tenant each minute.
#pragma once

#include <cstddef>
#include <string>

namespace smt::runtime::server {

inline constexpr size_t kMostStrictServers = 16;

// Deletes the files of all but the kMostStrictServers that began last. One that runs holds its lock, and
// keeps its files.
void forget_strict_servers(const std::string& directory);

}  // namespace smt::runtime::server
