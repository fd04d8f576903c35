#include "runtime/server/image_opener.h"

#include <utility>

#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

bool workers_open_images(const device::Device& device, const jit::Settings& settings) {
    return !device.properties().keeps_sessions_apart && settings.compiles_ptx && !settings.compiler.empty();
}

// The simulated device executes PTX, and assigns output to its session, which then needs no printing turns.
jit::OpenOrder order_to_open(Session& session) {
    const device::Properties& device = session.device().properties();
    const bool simulated = device.keeps_sessions_apart;
    const int architecture = architecture_of(session.device());
    jit::OpenOrder asked;
    asked.device = image::device_from_environment(architecture);
    if (simulated) asked.device.takes_cubins = false;
    asked.target = {architecture, simulated};
    const jit::Settings& settings = session.server().compiler().settings();
    asked.most_ptx_bytes = settings.ptx_bytes;
    asked.prints = !simulated;
    asked.tables = session.fence() != nullptr;
    asked.moves = session.server().expects_takeover() || asked.tables;
    asked.doors = settings.doors && (!simulated || device.puts_doors);
    return asked;
}

int architecture_of(const device::Device& device) {
    return 10 * device.properties().compute_major + device.properties().compute_minor;
}

std::unique_ptr<jit::Opener> make_opener(const device::Device& device, jit::Opener::Say say) {
    jit::Settings settings = jit::read_settings(jit::own_folder());
    const bool warm = settings.doors && workers_open_images(device, settings);
    auto opener = std::make_unique<jit::Opener>(std::move(settings), std::move(say));
    if (warm) opener->warm(architecture_of(device));
    return opener;
}

}  // namespace smt::runtime::server
