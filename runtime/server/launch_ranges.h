// What a launch reads and writes, from its kernel's PTX (rewriter/ptx/effects.h) and its parameters. The
// parameter's value lies in an allocation, and an access counts as one of all of it.
#pragma once

#include <optional>

#include "runtime/server/code/code_table.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/takeover/repeatable.h"

namespace smt::runtime::server {

struct LaunchRanges {
    MemoryRanges reads, writes;
};

// Nothing: a parameter points into no memory of the device, or several do.
std::optional<LaunchRanges> ranges_of(const ptx::Effects& effects, const char* parameters, uint32_t bytes,
                                      const TenantMemory& memory);

// Whether any of its blocks may be begun anew: the launch writes nothing that it reads. Memory that the
// program maps itself may have a second address, so a launch that writes there counts as one that may not.
bool repeats(const ptx::Effects& effects, const char* parameters, uint32_t bytes, const TenantMemory& memory);

}  // namespace smt::runtime::server
