#include "runtime/device/simulated/driver/settings.h"

#include <cstdlib>
#include <cstring>

#include "runtime/protocol/environment.h"

namespace smt::runtime::device::simulated {

namespace {

uint64_t number(const char* name, uint64_t least, uint64_t most, uint64_t otherwise) {
    const char* text = std::getenv(name);
    if (!text || !*text) return otherwise;
    char* end = nullptr;
    uint64_t value = std::strtoull(text, &end, 10);
    static constexpr char kUnits[] = "KMGT";
    if (const char* unit = *end ? std::strchr(kUnits, *end) : nullptr) {
        value <<= 10 * (unit - kUnits + 1);
        ++end;
    }
    return *end == 0 && value >= least && value <= most ? value : otherwise;
}

}  // namespace

Settings read_settings() {
    using namespace environment;
    Settings settings;
    settings.engine.machine.multiprocessors =
        static_cast<int>(number(kSimMultiprocessors, 1, kSimMultiprocessorsMax, kSimMultiprocessorsDefault));
    settings.engine.machine.step_limit = number(kSimStepLimit, 0, ~0ull, kSimStepLimitDefault);
    settings.engine.grace = std::chrono::milliseconds(number(kSimGrace, 1, kSimGraceMax, kSimGraceDefault));
    settings.engine.sessions = static_cast<uint32_t>(number(kSimTenants, 0, kSimTenantsMax, 0));
    settings.memory_bytes = number(kSimMemory, 2ull << 20, 1ull << 40, kSimMemoryDefault);
    if (const char* folder = std::getenv(kSimStreams)) settings.streams = folder;
    return settings;
}

}  // namespace smt::runtime::device::simulated
