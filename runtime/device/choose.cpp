// Which device a server opens.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "runtime/device/device.h"
#include "runtime/device/simulated/simulated_device.h"
#include "runtime/protocol/environment.h"

namespace smt::runtime::device {

std::unique_ptr<Device> open_device(const std::string& key, const std::string& core_dump, std::string& notice, std::string& error) {
    const char* given = std::getenv(environment::kDevice);
    const std::string_view wanted = given ? given : "";
    if (wanted == environment::kDeviceSimulated) return simulated::open(key, error);
    const char* driver = std::getenv(environment::kDriver);
    const bool named = driver && *driver;  // a driver that was asked for by name must be there
    if (!wanted.empty() && wanted != environment::kDeviceGpu) {
        error = fmt::format("{}={} is neither {} nor {}", environment::kDevice, wanted,
                            environment::kDeviceGpu, environment::kDeviceSimulated);
        return nullptr;
    }
    bool found = false;
    std::unique_ptr<Device> device = open_cuda(key, core_dump, &found, error);
    if (device || found || named || wanted == environment::kDeviceGpu) return device;
    notice = fmt::format("there is no GPU ({}): programs run on the simulated device", error);
    error.clear();
    return simulated::open(key, error);
}

}  // namespace smt::runtime::device
