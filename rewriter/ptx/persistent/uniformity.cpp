#include "rewriter/ptx/persistent/uniformity.h"

#include <algorithm>

namespace smt::ptx::persistent {

namespace {

using namespace rewriter;
using enum Uniformity;

bool is_integer(const Instruction& instruction) {
    return std::all_of(instruction.types.begin(), instruction.types.end(), [](Type type) {
        switch (type) {
            case Type::kU16:
            case Type::kU32:
            case Type::kU64:
            case Type::kS16:
            case Type::kS32:
            case Type::kS64:
            case Type::kB16:
            case Type::kB32:
            case Type::kB64:
                return true;
            default:
                return false;
        }
    });
}

bool is_unsigned(const Instruction& instruction) {
    return !instruction.types.empty() &&
           (instruction.types[0] == Type::kU16 || instruction.types[0] == Type::kU32 ||
            instruction.types[0] == Type::kU64);
}

// The constant in the place of that input.
bool is_constant(const Instruction& instruction, size_t input, auto&& test) {
    const Operand& operand = instruction.operands[input + 1];
    return operand.kind == Operand::Kind::kInteger && test(operand.bits);
}
bool is_aligned(uint64_t value) { return value % kWarpThreads == 0; }
bool drops_lanes(uint64_t shift) { return shift >= kWarpBits; }

Uniformity plain(const std::vector<Uniformity>& inputs) {
    return std::any_of(inputs.begin(), inputs.end(), may_differ) ? kDiffers : kSame;
}

Uniformity of_integers(const Instruction& instruction, const std::vector<Uniformity>& inputs) {
    const bool low = !instruction.has(Modifier::kHi);
    switch (instruction.opcode) {
        case Opcode::kMov:
        case Opcode::kCvt:  // the low bits of a number, or the number itself
            return inputs[0];
        case Opcode::kAdd:
            return sum(inputs[0], inputs[1]);
        case Opcode::kSub:
            return difference(inputs[0], inputs[1]);
        case Opcode::kMul:
            return low ? product(inputs[0], inputs[1]) : plain(inputs);
        case Opcode::kMad:
            return low ? sum(product(inputs[0], inputs[1]), inputs[2]) : plain(inputs);
        case Opcode::kOr:
        case Opcode::kXor:
            return sum(inputs[0], inputs[1]);
        case Opcode::kAnd:
            if (inputs[0] == kLanes && is_constant(instruction, 1, is_aligned)) return kSame32;
            return product(inputs[0], inputs[1]);
        case Opcode::kShl:
            if (inputs[0] == kSame && is_constant(instruction, 1, drops_lanes)) return kSame32;
            return inputs[0] == kSame32 && !may_differ(inputs[1]) ? kSame32 : plain(inputs);
        case Opcode::kShr:
            return inputs[0] == kLanes && is_constant(instruction, 1, drops_lanes) ? kSame : plain(inputs);
        case Opcode::kDiv:  // a negative number is divided towards zero: 32 in a row may have two quotients
            return inputs[0] == kLanes && is_unsigned(instruction) && is_constant(instruction, 1, is_aligned)
                       ? kSame
                       : plain(inputs);
        default:
            return plain(inputs);
    }
}

}  // namespace

Uniformity uniformity_of(const Operand& special, Team team) {
    const bool warp = team == Team::kWarp;
    switch (special.special) {
        case Special::kTid:
            if (!warp || special.component < 0) return kDiffers;
            return special.component == 0 ? kLanes : kSame;
        case Special::kNtid:
            return warp && special.component == 0 ? kSame32 : kSame;
        case Special::kCtaid:
        case Special::kNctaid:
        case Special::kNwarpid:
        case Special::kSmid:
        case Special::kNsmid:
        case Special::kDynamicSmemSize:
            return kSame;
        default:
            return kDiffers;
    }
}

Uniformity result_of(const Instruction& instruction, const std::vector<Uniformity>& inputs) {
    if (std::count(inputs.begin(), inputs.end(), kDiffers) != 0) return kDiffers;
    if (std::count(inputs.begin(), inputs.end(), kUnknown) != 0) return kUnknown;
    const bool scalar = !instruction.operands.empty() &&
                        instruction.operands[0].kind == Operand::Kind::kRegister &&
                        inputs.size() + 1 == instruction.operands.size();
    if (!scalar || instruction.has(Modifier::kSat) || !is_integer(instruction)) return plain(inputs);
    return of_integers(instruction, inputs);
}

}  // namespace smt::ptx::persistent
