#include "runtime/device/simulated/driver/settings.h"

#include <cstdlib>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/environment_number.h"

namespace smt::runtime::device::simulated {

Settings read_settings() {
    using namespace environment;
    Settings settings;
    settings.engine.machine.multiprocessors =
        static_cast<int>(number_of(kSimMultiprocessors, 1, kSimMultiprocessorsMax, kSimMultiprocessorsDefault));
    settings.engine.machine.step_limit = number_of(kSimStepLimit, 0, ~0ull, kSimStepLimitDefault);
    settings.engine.grace = std::chrono::milliseconds(number_of(kSimGrace, 1, kSimGraceMax, kSimGraceDefault));
    settings.dispatch_clock = number_of(kSimDispatchClock, 0, 1, 0) != 0;
    settings.engine.loads_wait = number_of(kSimLoadsWait, 0, 1, 0) != 0;
    settings.engine.sessions = static_cast<uint32_t>(number_of(kSimTenants, 0, kSimTenantsMax, 0));
    settings.memory_bytes = number_of(kSimMemory, kSimMemoryLeast, kSimMemoryMost, kSimMemoryDefault);
    if (const char* folder = std::getenv(kSimStreams)) settings.streams = folder;
    return settings;
}

}  // namespace smt::runtime::device::simulated
