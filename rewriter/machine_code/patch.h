// Puts the door in front of the entries of a cubin.
//
//   entry, unpatched:  A B C ... end
//   patched:           head; A B C ... end; P: prologue; branch to A
//
// The head is put in front of the code in the entry's own section, the prologue behind it. One parameter more,
// behind the others, has what the prologue goes by (DoorLaunch); zeros for a launch that is not to be stopped,
// which falls through the head. Others branch from there to the prologue, and from that back, if admitted. What
// says where the code is moves with it (code_move.h, attributes.h).
//
// Nothing in the cubin is trusted. What is not laid out as ptxas does it is left alone, with a reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rewriter/machine_code/prologue.h"

namespace smt::machine_code {

struct PatchedEntry {
    std::string name;
    std::string reason;          // why it is left alone; empty: it is patched
    uint32_t door_offset = 0;    // of the DoorLaunch among the parameters
    uint32_t parameters = 0;     // with that one
    uint32_t registers = 0;      // of a thread, as patched
    uint32_t own_registers = 0;  // before
    // It may wait for another CTA. For an earlier one it does not wait in vain (door.h). For a later one it
    // can wait only where all run at once: such a launch is not to be stopped.
    bool waits = false;
};

struct Patched {
    std::string cubin;  // empty: no entry was patched
    std::vector<PatchedEntry> entries;
};

// Why an entry of that name is to be left alone; empty: it is not.
using LeaveAlone = std::string_view (*)(std::string_view name);

// Problem: no cubin, or one that is left alone as a whole.
[[nodiscard]] std::variant<Patched, Problem> patch(std::string_view cubin, Prologues& prologues,
                                                   LeaveAlone leave_alone = nullptr);

}  // namespace smt::machine_code
