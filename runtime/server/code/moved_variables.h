// The variables of an image that stand in the session's own device memory (image/movable.h): a process that
// takes the session over loads the image again, and finds their values there.
//
// On a GPU the cubin is changed before it is loaded; a device that places variables itself is given memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "runtime/image/managed.h"

namespace smt::runtime::server {

class MovedVariables {
public:
    MovedVariables() = default;
    // They stand in a block at `memory` (TenantMemory's). `layout`: tells it from the block of another code,
    // or of other variables. `variables`: where in it; empty: the driver knows.
    MovedVariables(uint64_t memory, std::string layout,
                   std::map<std::string, image::ManagedPlan::Variable> variables = {})
        : memory_(memory), layout_(std::move(layout)), variables_(std::move(variables)) {}

    uint64_t memory() const { return memory_; }  // 0: none were moved
    const std::string& layout() const { return layout_; }
    bool look_up(const char* name, uint64_t* address, uint64_t* bytes) const {
        const auto found = variables_.find(name);
        if (found == variables_.end()) return false;
        *address = memory_ + found->second.offset;
        *bytes = found->second.bytes;
        return true;
    }

private:
    uint64_t memory_ = 0;
    std::string layout_;
    std::map<std::string, image::ManagedPlan::Variable> variables_;
};

}  // namespace smt::runtime::server
