#include "runtime/dispatch/settings.h"

#include <chrono>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/environment_number.h"

namespace smt::runtime::dispatch {

Settings read_settings(bool keeps_a_clock) {
    using namespace environment;
    Settings settings;
    settings.maps = number_of(kMapping, 0, 1, 0) != 0;
    settings.ahead = std::chrono::milliseconds(number_of(kAhead, 0, kAheadMax, keeps_a_clock ? 0 : kAheadDefault));
    return settings;
}

}  // namespace smt::runtime::dispatch
