// The prologue in PTX.
#pragma once

#include <cstdint>
#include <string>

namespace smt::machine_code {

// Two kernels whose parameter at that offset (a multiple of 16) is a DoorLaunch (door.h), and which end with
// a trap in the place of the kernel that follows. "door" is the prologue; "head" leaves if there are orders.
std::string prologue_text(int architecture, uint32_t parameter);

}  // namespace smt::machine_code
