// smt inspect --door: in front of which kernels of machine code the door can be put (rewriter/machine_code).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewriter/machine_code/prologue.h"
#include "runtime/image/container.h"

namespace smt::tools {

// Of the cubins for one architecture. Reasons: in words, with how many entries, or cubins, are left alone.
struct DoorRow {
    size_t cubins = 0, patched_cubins = 0, entries = 0, patched = 0;
    uint64_t bytes = 0;        // of all cubins
    double patch_seconds = 0;  // without assembling prologues
    std::map<std::string, size_t> entry_reasons, cubin_reasons;
};
using DoorRows = std::map<int, DoorRow>;  // by architecture

// `architecture`: the only one that is looked at; 0: all. `assembler`: nothing is said to be assembled twice.
DoorRows door_rows(const image::Container& file, int architecture, machine_code::Assembler assembler);

std::string door_text(const std::string& path, const DoorRows& rows);
std::string door_json(const std::string& path, const DoorRows& rows);

}  // namespace smt::tools
