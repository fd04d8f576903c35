// Puts the door (rewriter/device/door.h) in front of the kernels of a PTX text, for a device that executes
// PTX. Of machine code rewriter/machine_code does the same.
//
//   .visible .entry k(.param .u64 to)                  .visible .entry k(.param .u64 to,
//   {                                                      .param .align 16 .b8 smt_door_launch[32])
//       A                                              {
//       ...                                                { prologue: exit, or }
//   }                                                      A
//                                                          ...
//
// The prologue is a scope of its own, so its names are no names of the kernel's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rewriter/ptx/parser.h"

namespace smt::ptx {

struct DoorEntry {
    std::string name;
    std::string reason;   // why it is left alone; empty: it has the door
    uint32_t offset = 0;  // of the DoorLaunch among the parameters
    // It may wait for another CTA, which may be one that was refused. Such a launch is not to be stopped.
    bool waits = false;
};

struct WithDoors {
    std::string text;  // empty: no kernel got a door
    std::vector<DoorEntry> entries;
};

// Why a kernel of that name is to be left alone; empty: it is not.
using LeaveAlone = std::string_view (*)(std::string_view name);

// Diagnostic: the text cannot be read. The text is not trusted.
[[nodiscard]] std::variant<WithDoors, Diagnostic> put_doors(std::string_view text,
                                                            LeaveAlone leave_alone = nullptr);

}  // namespace smt::ptx
