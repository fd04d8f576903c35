#include "runtime/dispatch/settings.h"

#include <chrono>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/environment_values.h"

namespace smt::runtime::dispatch {

Settings read_settings(bool keeps_a_clock) {
    using namespace environment;
    Settings settings;
    settings.maps = number(kMapping, 0, 1, 0) != 0;
    settings.ahead = std::chrono::milliseconds(number(kAhead, 0, kAheadMax, keeps_a_clock ? 0 : kAheadDefault));
    return settings;
}

}  // namespace smt::runtime::dispatch
