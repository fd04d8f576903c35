// The __managed__ variables of an image, moved to the session's arena as a plan says
// (runtime/image/managed.h).
//
//   ManagedVariables managed(image::managed_plan(cubin));
//   if (managed.bytes()) {
//       ... memory of managed.bytes() at `address`, zeroed, that the device reaches
//       managed.place(cubin, address);                 // changes the cubin, writes the initial values
//   }
//
// PTX that the driver compiles has no plan: its variables are not served.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/image/managed.h"

namespace smt::runtime::server {

// Changes the cubin of the plan, whose variables stand in a block at `address` from now on; their first
// values are the caller's. The plan fits the cubin.
void redirect(const image::ManagedPlan& plan, std::vector<char>& cubin, uint64_t address);

class ManagedVariables {
public:
    ManagedVariables() = default;
    explicit ManagedVariables(image::ManagedPlan plan) : plan_(std::move(plan)) {}

    uint64_t bytes() const { return plan_.bytes; }  // 0: there are none
    // `cubin` is the one that the plan is of, and the plan fits it.
    void place(std::vector<char>& cubin, uint64_t address);

    // The device has placed the variables of its own accord: what is kept here is the memory.
    void keep(uint64_t memory) { memory_ = memory; }

    uint64_t memory() const { return memory_; }  // 0: not placed
    bool look_up(const char* name, uint64_t* address, uint64_t* bytes) const;

private:
    image::ManagedPlan plan_;
    uint64_t memory_ = 0;
};

}  // namespace smt::runtime::server
