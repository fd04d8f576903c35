#include "runtime/dispatch/settings.h"

#include <chrono>

#include "runtime/settings/read.h"

namespace smt::runtime::dispatch {

namespace {

constexpr uint64_t kAheadDefault = 10;

}  // namespace

Settings read_settings(bool keeps_a_clock) {
    using settings::Id;
    Settings settings;
    settings.gpu_time = smt::settings::flag_of(Id::kGpuTime);
    settings.maps = smt::settings::flag_of(Id::kMapping);
    settings.ahead =
        std::chrono::milliseconds(smt::settings::number_of(Id::kAhead, keeps_a_clock ? 0 : kAheadDefault));
    return settings;
}

}  // namespace smt::runtime::dispatch
