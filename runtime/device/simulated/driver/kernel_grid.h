// A launch as the machine runs it: blocks of the interpreter, with the driver as their surroundings.
#pragma once

#include <functional>
#include <memory>

#include "runtime/device/simulated/driver/code.h"
#include "runtime/device/simulated/driver/ordered_journal.h"
#include "runtime/device/simulated/driver/streams.h"
#include "runtime/device/simulated/driver/tenant.h"
#include "runtime/device/simulated/machine/machine.h"

namespace smt::runtime::device::simulated {

// What launches need of their device.
struct LaunchSurroundings {
    Memory& memory;
    OrderedJournal& journal;
    const Clock& clock;
    journal::Writer* names = nullptr;  // once there is a journal
    uint64_t step_limit = 0;
    uint64_t launches = 0;                         // %gridid
    Streams streams{""};                           // of what kernels execute
    std::function<void(CUresult)> lose_context{};  // null: a fault ends the work of its tenant only
};

std::shared_ptr<Grid> make_kernel_grid(LaunchSurroundings& surroundings, const hosted::Launch& launch,
                                       std::shared_ptr<Tenant> tenant,
                                       std::function<void(const GridResult&)> over);
void free_heap(Memory& memory, Tenant& tenant);  // what its kernels took with malloc and did not free

}  // namespace smt::runtime::device::simulated
