// The table of instructions: what the simulated device executes. The decoder works through it and
// docs/ptx-instructions.md is printed from it, so both say the same.
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "rewriter/ptx/syntax.h"
#include "runtime/device/simulated/exec/decoder.h"

namespace smt::runtime::device::simulated {

using TypeSet = std::bitset<64>;
using ModifierSet = std::bitset<static_cast<size_t>(ptx::Modifier::kCount)>;

// From words parted by spaces; a word that PTX does not have stops the program at its start.
TypeSet types(const char* names);
ModifierSet modifiers(const char* names);

struct Row {
    const char* family;
    ptx::Opcode opcode;
    ModifierSet required;  // all of these, or the row is another form of the instruction
    ModifierSet allowed;   // these as well
    TypeSet first;         // of the first type; none: the instruction has no type
    TypeSet second;        // of the second; none: it has at most one
    Unit unit;
    // Fills in handler, operands and whatever else differs from an Instruction's defaults.
    void (*decode)(Decoder&, const ptx::Instruction&, Instruction&);
    const char* note = "";  // for the documentation
};

const std::vector<Row>& instruction_table();

// The row for an instruction; null after refusing it with a reason.
const Row* find_row(const ptx::Instruction& source, Decoder& decoder);

// docs/ptx-instructions.md
std::string instruction_document();

// Each family adds its rows.
void add_integer(std::vector<Row>& rows);
void add_extended(std::vector<Row>& rows);
void add_bits(std::vector<Row>& rows);
void add_fields(std::vector<Row>& rows);
void add_dot(std::vector<Row>& rows);
void add_floating(std::vector<Row>& rows);
void add_approximate(std::vector<Row>& rows);
void add_half(std::vector<Row>& rows);
void add_compare(std::vector<Row>& rows);
void add_select(std::vector<Row>& rows);
void add_convert(std::vector<Row>& rows);
void add_move(std::vector<Row>& rows);
void add_access(std::vector<Row>& rows);
void add_copy(std::vector<Row>& rows);
void add_atomic(std::vector<Row>& rows);
void add_control(std::vector<Row>& rows);
void add_synchronization(std::vector<Row>& rows);
void add_warp_wide(std::vector<Row>& rows);
void add_video(std::vector<Row>& rows);

}  // namespace smt::runtime::device::simulated
