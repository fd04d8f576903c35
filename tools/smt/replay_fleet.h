// smt replay --gpus: recordings on many GPUs in virtual time (tools/fleet).
#pragma once

#include <string>

#include "tools/smt/command.h"

namespace smt::tools {

// The name; throws Misuse: there is no such policy.
const std::string& known_policy(const std::string& name);

int replay_on_fleet(const Options& options);

}  // namespace smt::tools
