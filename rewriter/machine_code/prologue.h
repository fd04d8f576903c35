// The prologue: the code at the door of each CTA, for one architecture and one place of its parameter.
//
// It is written in PTX (prologue_text.h), assembled for the cubin's own architecture, and cut out of the
// cubin that comes of it. The assembled code is compared with what this folder knows of instructions; where
// it is another, there is no prologue and nothing is patched.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rewriter/machine_code/attributes.h"
#include "rewriter/machine_code/instruction.h"

namespace smt::machine_code {

// PTX to a cubin for "sm_90".
using Assembler = std::function<std::variant<std::string, Problem>(const std::string& ptx,
                                                                   const std::string& architecture)>;

// With the head, code moves by a line of the instruction cache, so that it lies in its lines as before.
constexpr size_t kHeadInstructions = 8;
constexpr uint64_t kHeadBytes = kHeadInstructions * kInstructionBytes;

struct Prologue {
    // As many as kHeadInstructions. The last one is a branch to the prologue where there are orders, and has
    // yet to be given its target; without orders it falls through.
    std::vector<Instruction> head;
    std::vector<Instruction>
        code;            // falls through to what follows, and leaves by itself where a CTA is refused
    Instruction branch;  // unconditional, as the assembler makes it
    BranchForm form = BranchForm::kSplit;
    uint32_t registers = 0;
    uint32_t barriers = 0;
    uint16_t parameter_bank_at = 0;  // where parameters begin in constant bank 0
    // Of its instructions, in bytes from its first.
    std::vector<uint32_t> exits, warp_wide;
    bool uses_cta_z = false;  // attribute 0x04
};

class Prologues {
public:
    explicit Prologues(Assembler assembler) : assembler_(std::move(assembler)) {}

    // `parameter`: offset among the kernel's parameters, a multiple of 16. Two are assembled for an
    // architecture. The others are made of these, as far as the two differ in nothing but that offset.
    // Thread-safe; what was made is kept, and so is a Problem. The reference lives as long as this object.
    const std::variant<Prologue, Problem>& get(int architecture, uint32_t parameter);

private:
    const std::variant<Prologue, Problem>& assembled(int architecture, uint32_t parameter);

    const Assembler assembler_;
    std::mutex mutex_;  // guards known_
    std::map<std::pair<int, uint32_t>, std::variant<Prologue, Problem>> known_;
};

// For the parameter at `offset`, of those for 0 and for kSecondPlace; nothing: they differ in more than that.
constexpr uint32_t kSecondPlace = 64;
std::optional<Prologue> moved_prologue(const Prologue& at_zero, const Prologue& at_second, uint32_t offset);

// Of the cubin that the assembler made.
std::variant<Prologue, Problem> cut_prologue(std::string_view cubin);

}  // namespace smt::machine_code
