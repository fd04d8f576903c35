// Code that moves on within its section, and what says in a cubin where it is: symbols, relocations.
//
// The start of the section is no part of the code that moves. What names an entry without an offset, for
// instance to launch it, goes on to mean the start of its section.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "rewriter/machine_code/elf_editor.h"

namespace smt::machine_code {

// What a relocation has to do with code, as far as that matters where the code moves.
struct CodeReference {
    uint32_t target = 0;     // section that is relocated
    uint32_t record = 0;     // section of relocations
    uint64_t record_at = 0;  // in that
    uint64_t offset = 0;     // in the target
    uint32_t type = 0, symbol = 0;
    bool has_addend = false;  // else it stands in the target
    int64_t addend = 0;
};

// Calls with each relocation of the section; nothing for one of another kind.
void for_relocations(const ElfEditor& cubin, uint32_t section,
                     const std::function<void(const CodeReference&)>& call);

// Moves the code of some sections by `bytes`. `entries`: for each of them the number of its entry's symbol.
void move_code(ElfEditor& cubin, uint32_t symbols, const std::unordered_map<uint32_t, uint32_t>& entries,
               uint64_t bytes);

// Whether a symbol of a section of code means the section's start, wherever its code is.
bool is_start(const Elf64_Sym& symbol, bool entry);

}  // namespace smt::machine_code
