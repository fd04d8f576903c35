// See device_choice.h.
#include "tools/smt/device_choice.h"

#include <fmt/core.h>

#include <cstdlib>

#include "runtime/settings/config.h"
#include "runtime/settings/read.h"
#include "tools/smt/command.h"
#include "tools/smt/gpus.h"
#include "tools/smt/places.h"

namespace smt::tools {

std::string choose_device(const Options& options, const char* who, const char* gets) {
    std::string chosen(settings::text_of(settings::Id::kDevice));
    if (const std::string* device = options.value("--device")) {
        chosen = *device;
        if (!settings::accepts(settings::setting(settings::Id::kDevice), chosen))
            throw Misuse("--device wants gpu or sim");
        settings::set(settings::Id::kDevice, chosen);
    }
    if (!chosen.empty()) return chosen;
    const bool named =
        settings::c_text_of(settings::Id::kDriver) || settings::c_text_of(settings::Id::kRealDriver);
    if (named || gpu_node_exists()) return "gpu";
    fmt::print(stderr, "{}: there is no GPU here; {} the simulated device\n", who, gets);
    settings::set(settings::Id::kDevice, "sim");
    return "sim";
}

}  // namespace smt::tools
