// Compares the server settings in a program's environment with those of the running server. They take effect
// only if the program starts the server, so differences are reported.
#pragma once

#include <string>
#include <string_view>

namespace smt::runtime::server {

// `wanted`: lines KEY=VALUE with the keys of config files (runtime/settings/config.h). `policy`: the server's
// current one, which may have changed since its start. Returns a line per difference: "SMT_POLICY is fair
// here and priority in the server".
std::string differing_settings(std::string_view wanted, std::string_view policy);

}  // namespace smt::runtime::server
