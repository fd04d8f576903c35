// Which device a program or a server gets: the one that is named, or for want of a GPU the simulated one.
#pragma once

#include <string>

namespace smt::tools {

struct Options;

// "gpu" or "sim", by --device, SMT_DEVICE, or what this machine has; SMT_DEVICE says it
// from then on, unless it is the default. `who` and `gets` begin and end what is printed where none was
// chosen: "smt run: there is no GPU here; this program gets the simulated device".
std::string choose_device(const Options& options, const char* who, const char* gets);

}  // namespace smt::tools
