#include "runtime/server/keeping.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "install_layout.gen.h"
#include "runtime/device/device.h"
#include "runtime/jit/settings.h"
#include "runtime/keeper/client.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

// In the build it lies beside smtd; installed, among the programs that only smt and smtd start.
std::string find_keeper() {
    const std::string folder = jit::own_folder(), beside = folder + "/smt-keeper";
    if (access(beside.c_str(), X_OK) == 0) return beside;
    return folder + "/" + install_layout::kProgramsFromBin + "/smt-keeper";
}

}  // namespace

std::string start_keeper(device::Device& device) {
    const std::string_view wanted = settings::text_of(settings::Id::kKeeper);
    if (wanted != "1" && !takeover_wanted()) return {};
    const keeper::Started started = keeper::start(find_keeper(), device.memory_source());
    if (started.socket < 0)
        return fmt::format("no smt-keeper: {}: tenants' memory is the server's own", started.problem);
    device.physical_memory().keep_with(std::make_unique<keeper::Client>(started.socket), started.pid);
    return line_about_keeper(started.pid);
}

bool takeover_wanted() { return settings::is(settings::Id::kKeeper, "takeover"); }

std::string line_about_keeper(int pid) {
    return fmt::format("tenants' memory belongs to smt-keeper, process {}", pid);
}

}  // namespace smt::runtime::server
