// Which device a server opens.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "runtime/device/device.h"
#include "runtime/device/simulated/simulated_device.h"
#include "runtime/settings/read.h"

namespace smt::runtime::device {

std::unique_ptr<Device> open_device(const std::string& key, const std::string& core_dump, std::string& notice,
                                    std::string& error) {
    using settings::Id;
    if (settings::is(Id::kDevice, "sim")) return simulated::open(key, error);
    const bool named =
        settings::c_text_of(Id::kDriver) || settings::is(Id::kDevice, "gpu");  // it must be there
    if (const std::string_view wanted = settings::text_of(Id::kDevice);
        !wanted.empty() && !settings::accepts(settings::setting(Id::kDevice), wanted)) {
        error = fmt::format("{}={} is neither gpu nor sim", settings::variable_of(Id::kDevice), wanted);
        return nullptr;
    }
    bool found = false;
    std::unique_ptr<Device> device = open_cuda(key, core_dump, &found, error);
    if (device || found || named) return device;
    notice = fmt::format("there is no GPU ({}): programs run on the simulated device", error);
    error.clear();
    return simulated::open(key, error);
}

}  // namespace smt::runtime::device
