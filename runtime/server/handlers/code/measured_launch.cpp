#include "runtime/server/handlers/code/measured_launch.h"

#include <cstring>
#include <set>

#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

namespace {

// The bytes that the parameters' pointers reach: for each pointer the allocation that it points into (FLEP,
// section 4.2: the input's size). Any eight bytes with an address in the tenant's memory count as a pointer,
// so structs of pointers are included.
uint64_t reachable_bytes(Call& call, const LoadedKernel& kernel, const char* parameters) {
    std::set<uint64_t> seen;
    uint64_t bytes = 0;
    for (uint32_t at = 0; at + sizeof(uint64_t) <= kernel.parameter_bytes; at += sizeof(uint64_t)) {
        uint64_t address = 0;
        std::memcpy(&address, parameters + at, sizeof address);
        const BlockAllocator::Block block = call.session.memory().find(address);
        if (block.bytes && seen.insert(block.base).second)
            bytes += block.requested ? block.requested : block.bytes;
    }
    return bytes;
}

}  // namespace

Measuring::Launch describe_launch(Call& call, const LoadedKernel& kernel,
                                  const dispatch::ManagedFunction* form, const protocol::Launch& launch,
                                  const char* parameters, bool managed) {
    Measuring::Launch about;
    about.known = kernel.form.known;
    about.shape = {{launch.block[0], launch.block[1], launch.block[2]},
                   uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]};
    about.managed = form && suits(form->reuse, launch.block[0]);
    about.resources.registers = about.managed ? form->registers : kernel.registers;
    about.resources.local_bytes = kernel.local_bytes;
    about.resources.static_shared_bytes = about.managed ? form->static_shared : kernel.static_shared;
    about.resources.dynamic_shared_bytes = launch.shared_bytes;
    const auto fitting = [&](CUfunction function) {
        int fits = 0;
        call.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &fits, function, static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]),
            launch.shared_bytes);
        return fits;
    };
    about.resources.most_ctas_per_sm = fitting(about.managed ? form->function : kernel.function);
    about.ctas_per_sm = fitting(form && managed ? form->function : kernel.function);
    about.input_bytes = reachable_bytes(call, kernel, parameters);
    return about;
}

}  // namespace smt::runtime::server::handlers
