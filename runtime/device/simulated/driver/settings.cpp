#include "runtime/device/simulated/driver/settings.h"

#include "runtime/settings/read.h"

namespace smt::runtime::device::simulated {

Settings read_settings() {
    using settings::Id, settings::flag_of, settings::number_of;
    Settings settings;
    settings.engine.machine.multiprocessors = static_cast<int>(number_of(Id::kSimMultiprocessors));
    settings.engine.machine.step_limit = number_of(Id::kSimStepLimit);
    settings.engine.grace = std::chrono::milliseconds(number_of(Id::kSimGrace));
    settings.doors = flag_of(Id::kSimDoors);
    settings.dispatch_clock = flag_of(Id::kSimDispatchClock);
    settings.engine.loads_wait = flag_of(Id::kSimLoadsWait);
    settings.engine.one_context = flag_of(Id::kSimOneContext);
    settings.engine.sessions = static_cast<uint32_t>(number_of(Id::kSimTenants));
    settings.memory_bytes = number_of(Id::kSimMemory);
    settings.streams = smt::settings::text_of(Id::kSimStreams);
    return settings;
}

}  // namespace smt::runtime::device::simulated
