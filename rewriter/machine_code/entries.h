// The entries of a cubin, and what belongs to each: sections of code, attributes and parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rewriter/machine_code/elf_editor.h"

namespace smt::machine_code {

struct CubinEntry {
    std::string name;
    std::string reason;    // why its parts are not as ptxas lays them out; empty: they are
    uint32_t symbol = 0;   // number in the table of symbols
    uint64_t size_at = 0;  // of the symbol's size, in that table
    uint32_t code = 0, attributes = 0, constants = 0;  // sections
    uint32_t constants_symbol = 0;                     // the symbol that stands for that section
};

struct CubinEntries {
    uint32_t symbols = 0;            // section of the table of symbols
    uint32_t common_attributes = 0;  // section .nv.info
    std::vector<CubinEntry> entries;
    std::vector<uint32_t> functions;  // sections of code that are no entries'
};

// Problem: a cubin without one of the two, or with more than one.
[[nodiscard]] std::variant<CubinEntries, Problem> find_entries(const ElfEditor& cubin);

}  // namespace smt::machine_code
