// The words of PTX as enumerations: opcodes, modifiers, types, special registers. Each list is data in a .def
// file; a word that is not there is unknown by construction.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

namespace smt::ptx {

enum class Opcode : uint8_t {
#define SMT_PTX_OPCODE(id, name, fewest, most, modifiers) id,
#include "rewriter/ptx/opcodes.def"
#undef SMT_PTX_OPCODE
};

enum class Modifier : uint16_t {
#define SMT_PTX_MODIFIER(id, name) id,
#include "rewriter/ptx/modifiers.def"
#undef SMT_PTX_MODIFIER
    kCount
};

enum class Type : uint8_t {
#define SMT_PTX_TYPE(id, name, bits) id,
#include "rewriter/ptx/types.def"
#undef SMT_PTX_TYPE
};

enum class Special : uint8_t {
#define SMT_PTX_SPECIAL(id, name) id,
#include "rewriter/ptx/special_registers.def"
#undef SMT_PTX_SPECIAL
};

struct OpcodeFacts {
    const char* name;
    int fewest, most;                                              // operands
    std::bitset<static_cast<size_t>(Modifier::kCount)> modifiers;  // it takes
};

const OpcodeFacts& facts(Opcode opcode);
const char* name(Opcode opcode);
const char* name(Modifier modifier);  // without the dot
const char* name(Type type);          // without the dot
const char* name(Special special);    // with the %
int bits(Type type);                  // 0: an opaque handle

std::optional<Opcode> find_opcode(std::string_view name);
std::optional<Modifier> find_modifier(std::string_view name);  // kShape is not found here
std::optional<Type> find_type(std::string_view name);
std::optional<Special> find_special(std::string_view name);  // not %envreg3 and %pm1: those have numbers

// Words in opcodes.def that are no modifier; empty unless the lists contradict each other.
std::string_view unknown_in_opcode_list();

}  // namespace smt::ptx
