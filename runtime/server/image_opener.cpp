#include "runtime/server/image_opener.h"

#include <utility>

namespace smt::runtime::server {

bool workers_open_images(const device::Device& device, const jit::Settings& settings) {
    return !device.properties().keeps_sessions_apart && settings.compiles_ptx && !settings.compiler.empty();
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
