// The prologue in PTX.
#pragma once

#include <cstdint>
#include <string>

namespace smt::machine_code {

// The kernel "door" whose parameter at that offset (a multiple of 16) is a DoorLaunch (door.h). It ends
// with a trap in the place of the kernel that follows.
std::string prologue_text(int architecture, uint32_t parameter);

}  // namespace smt::machine_code
