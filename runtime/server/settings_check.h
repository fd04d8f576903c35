// What a program's environment says of the server's settings, beside what the running server has: it counts only when the program
// starts the server, so what differs is said.
#pragma once

#include <string>
#include <string_view>

namespace smt::runtime::server {

// `wanted`: lines KEY=VALUE with the keys of config files (runtime/settings/config.h). `policy`: the server's, which may have changed since its start. A line for each that differs:
// "SMT_POLICY is fair here and priority in the server".
std::string differing_settings(std::string_view wanted, std::string_view policy);

}  // namespace smt::runtime::server
