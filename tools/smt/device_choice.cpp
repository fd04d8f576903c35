// See device_choice.h.
#include "tools/smt/device_choice.h"

#include <fmt/core.h>

#include <cstdlib>

#include "runtime/protocol/environment.h"
#include "tools/smt/command.h"
#include "tools/smt/gpus.h"
#include "tools/smt/places.h"

namespace smt::tools {

std::string choose_device(const Options& options, const char* who, const char* gets) {
    std::string chosen = variable(environment::kDevice);
    if (const std::string* device = options.value("--device")) {
        chosen = *device;
        if (chosen != environment::kDeviceSimulated && chosen != environment::kDeviceGpu)
            throw Misuse("--device wants gpu or sim");
        ::setenv(environment::kDevice, chosen.c_str(), 1);
    }
    if (!chosen.empty()) return chosen;
    const bool named = !variable(environment::kDriver).empty() || !variable(environment::kRealDriver).empty();
    if (named || gpu_node_exists()) return environment::kDeviceGpu;
    fmt::print(stderr, "{}: there is no GPU here; {} the simulated device\n", who, gets);
    ::setenv(environment::kDevice, environment::kDeviceSimulated, 1);
    return environment::kDeviceSimulated;
}

}  // namespace smt::tools
