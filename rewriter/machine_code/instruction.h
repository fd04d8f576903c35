// One machine instruction of sm_70 and later, as far as the door needs to know it: 128 bits.
//
//   0..8      operation (with 9..11, the kind of its operands)       12..15   guard; 7: always
//   34..81    a branch's displacement in words of 4 bytes, from the next instruction; from sm_90 on these
//             are its higher bits, and the lower ones 16..23
//   38..53    where an operand in a constant bank is, in bytes; from sm_100 on 37..52 of some instructions
//   77..80    a load's order and scope                               81..83   predicate that a comparison
//   sets 105..108  cycles before the next instruction is issued           109      may the scheduler change
//   warps 110..112  scoreboard that the result releases; 7: none           113..115 the same of the source
//   registers 116..121  scoreboards that it waits for, a bit for each          122..125 operands kept for the
//   next one
//
// That is what published studies of these architectures say and what ptxas' output shows; prologue.cpp
// compares it with assembled code before anything is patched.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace smt::machine_code {

constexpr uint64_t kInstructionBytes = 16;

enum class BranchForm : uint8_t { kWhole, kSplit };  // to sm_89; from sm_90 on

class Instruction {
public:
    enum class Operation : uint16_t {  // bits 0..8
        kNop = 0x118,
        kBreakpoint = 0x15c,
        kBranch = 0x147,  // BRA
        kStoreGlobal = 0x186,
        kLoad = 0x180,        // LD
        kLoadGlobal = 0x181,  // LDG
        kCallRelative = 0x144,
        kLoadConstant = 0x182,  // LDC
        kMove = 0x002,
        kMultiplyAdd = 0x024,  // IMAD, which moves as well
        kCompare = 0x00c,      // ISETP
        kExit = 0x14d,
        kLoadConstantUniform = 0x1ac,  // LDCU, of sm_100 and later
        kReadConstantUniform = 0x0b9,  // ULDC, of sm_90 and before
    };

    Instruction() = default;
    static Instruction at(std::string_view code, size_t number);  // it must be there
    void append_to(std::string& code) const;

    Operation operation() const { return static_cast<Operation>(bits(0, 9)); }
    bool is(Operation operation) const { return this->operation() == operation; }
    bool always() const { return bits(12, 4) == 7; }
    bool operator==(const Instruction&) const = default;

    // Where a branch leads, in bytes from its own place.
    int64_t jump(BranchForm form) const;
    Instruction with_jump(int64_t bytes, BranchForm form) const;
    // The same for those threads alone for which `other` is.
    Instruction guarded_as(const Instruction& other) const { return with(12, 4, other.bits(12, 4)); }
    // Whether its guard is the predicate, or its contrary, that `comparison` sets.
    bool is_guarded_by(const Instruction& comparison) const { return bits(12, 3) == comparison.bits(81, 3); }
    // The same, issued and waiting as `other`: bits 105 and following.
    Instruction scheduled_as(const Instruction& other) const;

    // Cycles before the next instruction is issued.
    unsigned stall() const { return static_cast<unsigned>(bits(105, 4)); }
    Instruction with_stall(unsigned cycles) const { return with(105, 4, cycles); }

    // As the first instruction of ptxas' kernels does.
    bool sets_stack_register() const;
    // Its operand in a constant bank that many bytes further on.
    enum class ConstantForm : unsigned { kAt38 = 38, kAt37 = 37 };
    Instruction with_constant_moved(uint32_t bytes, ConstantForm form) const;
    // A load that sees what other CTAs write while this one runs: volatile, or strong in the scope of the GPU
    // or the system. What waits for another CTA loads so.
    bool loads_from_others() const;
    bool releases_result() const { return bits(110, 3) != 7; }
    bool releases_sources() const { return bits(113, 3) != 7; }
    // Whether it waits for the scoreboard that `load` releases with its result.
    bool waits_for(const Instruction& load) const {
        return load.releases_result() && (bits(116, 6) >> load.bits(110, 3) & 1) != 0;
    }
    Instruction that_waits_for_all() const { return with(116, 6, 0x3f); }

private:
    uint64_t bits(unsigned at, unsigned count) const;
    Instruction with(unsigned at, unsigned count, uint64_t value) const;

    std::array<uint64_t, 2> words_{};
};

}  // namespace smt::machine_code
