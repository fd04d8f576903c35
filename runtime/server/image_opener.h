// The workers that open tenants' images (runtime/jit/opener.h), for a device.
#pragma once

#include <memory>

#include "runtime/device/device.h"
#include "runtime/jit/opener.h"

namespace smt::runtime::server {

class Session;

// Of such a device, and with these settings; else this process opens images itself
// (handlers/code/opening.h).
bool workers_open_images(const device::Device& device, const jit::Settings& settings);

// How code of the session is to be opened. An image as a program of a fenced session gave it needs
// OpenOrder::fences as well.
jit::OpenOrder order_to_open(Session& session);

// 90 for compute capability 9.0.
int architecture_of(const device::Device& device);

// With a worker that is ready for the device's images, where workers open them.
std::unique_ptr<jit::Opener> make_opener(const device::Device& device, jit::Opener::Say say);

}  // namespace smt::runtime::server
