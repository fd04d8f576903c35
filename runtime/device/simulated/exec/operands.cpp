// The decoder's view of operands: which slot a register, constant, special register or address has.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/device/simulated/exec/decoder.h"
#include "runtime/device/simulated/exec/execution.h"
#include "runtime/device/simulated/exec/families/control.h"
#include "runtime/device/simulated/exec/families/special.h"
#include "runtime/device/simulated/exec/numbers.h"
#include "runtime/device/simulated/exec/spaces.h"
#include "runtime/device/simulated/exec/specials.h"

namespace smt::runtime::device::simulated {

using Kind = ptx::Operand::Kind;

namespace {

int storage(ptx::Type type) {
    const int bits = ptx::bits(type);
    return bits == 1 ? 1 : std::max(16, bits);
}

}  // namespace

Slot Decoder::temporary(int width) {
    virtuals_.push_back({width});
    return Slot(Slot::Base::kVirtual, static_cast<uint32_t>(virtuals_.size()) - 1);
}

Slot Decoder::carry() {
    if (!carry_) carry_ = temporary(1);
    return *carry_;
}

Slot Decoder::constant(uint64_t bits, int width) {
    if (width < 64) bits &= (1ull << width) - 1;
    auto [at, fresh] = constants_.try_emplace({bits, width}, Slot());
    if (!fresh) return at->second;
    const size_t bytes = static_cast<size_t>(width) / 8;
    const size_t offset = (code_.constants.size() + 15) / 16 * 16;
    code_.constants.resize(offset + bytes * kLanes);
    for (int i = 0; i < kLanes; ++i)
        std::memcpy(&code_.constants[offset + static_cast<size_t>(i) * bytes], &bits,
                    std::min(bytes, sizeof bits));
    return at->second = Slot(Slot::Base::kConstants, static_cast<uint32_t>(offset));
}

Slot Decoder::predicate_constant(bool value) { return constant(value ? kAll : 0, 32); }  // its first word

std::optional<uint64_t> Decoder::immediate(const ptx::Operand& operand) const {
    if (operand.kind != Kind::kInteger) return std::nullopt;
    return operand.bits;
}

uint64_t Decoder::immediate_bits(const ptx::Operand& operand, ptx::Type type) {
    if (operand.kind == Kind::kInteger) {
        if (type == ptx::Type::kF32 || type == ptx::Type::kF64)
            refuse("an integer constant where a floating-point one belongs");
        return operand.bits;
    }
    const bool single = operand.kind == Kind::kFloat32;
    const double value = single
                             ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(operand.bits)))
                             : std::bit_cast<double>(operand.bits);
    const int width = storage(type);
    if (width == (single ? 32 : 64)) return operand.bits;
    if (width == 64) return std::bit_cast<uint64_t>(value);
    if (width == 32) return std::bit_cast<uint32_t>(static_cast<float>(value));
    if (type == ptx::Type::kBf16) return double_to_brain(value);
    return double_to_half(value);
}

Slot Decoder::register_slot(const ptx::Operand& operand, int* width) {
    const Register* found = find(&Names::registers, operand.name);
    if (found == nullptr) {
        refuse(fmt::format("no register {} here", operand.name));
        return {};
    }
    *width = found->width;
    if (operand.component >= found->components) refuse(fmt::format("{} has no such component", operand.name));
    const uint32_t component = operand.component > 0 ? static_cast<uint32_t>(operand.component) : 0;
    return Slot(Slot::Base::kVirtual, found->number + component);
}

int Decoder::register_width(const ptx::Operand& operand) {
    if (operand.kind != Kind::kRegister) return 0;
    const Register* found = find(&Names::registers, operand.name);
    return found == nullptr ? 0 : found->width;
}

Slot Decoder::read_any(const ptx::Operand& operand, ptx::Type type, int* width) {
    *width = storage(type);
    switch (operand.kind) {
        case Kind::kRegister: {
            const Slot slot = register_slot(operand, width);
            reads(slot);
            return slot;
        }
        case Kind::kInteger:
        case Kind::kFloat32:
        case Kind::kFloat64:
            return constant(immediate_bits(operand, type), *width);
        case Kind::kSpecial: {
            const Slot slot = special(operand, *width);
            reads(slot);
            return slot;
        }
        case Kind::kSymbol: {
            const Slot slot = symbol_address(operand, *width);
            reads(slot);
            return slot;
        }
        default:
            refuse("an operand of this form is not supported");
            return {};
    }
}

Slot Decoder::read(const ptx::Operand& operand, ptx::Type type) {
    int width = 0;
    const Slot slot = read_any(operand, type, &width);
    if (!failed() && width != storage(type))
        refuse(
            fmt::format("{} has {} bits, .{} has {}", operand.name, width, ptx::name(type), ptx::bits(type)));
    return slot;
}

Slot Decoder::write_any(const ptx::Operand& operand, ptx::Type type, int* width) {
    *width = storage(type);
    if (operand.kind == Kind::kSink) return temporary(*width);
    if (operand.kind != Kind::kRegister) {
        refuse("a result must be a register");
        return {};
    }
    const Slot slot = register_slot(operand, width);
    writes(slot);
    return slot;
}

Slot Decoder::write(const ptx::Operand& operand, ptx::Type type) {
    int width = 0;
    const Slot slot = write_any(operand, type, &width);
    if (operand.kind == Kind::kSink) writes(slot);
    if (!failed() && width != storage(type))
        refuse(
            fmt::format("{} has {} bits, .{} has {}", operand.name, width, ptx::name(type), ptx::bits(type)));
    return slot;
}

namespace {

void invert_predicate(Execution& x, const Instruction& in) { x.set_predicate(in.d, ~x.predicate(in.a)); }

}  // namespace

Slot Decoder::read_predicate(const ptx::Operand& operand) {
    if (operand.kind == Kind::kInteger) return predicate_constant((operand.bits != 0) != operand.negated);
    if (operand.kind == Kind::kSpecial)
        return predicate_constant(operand.negated);  // %is_explicit_cluster: no
    int width = 0;
    if (operand.kind != Kind::kRegister) {
        refuse("a predicate belongs here");
        return {};
    }
    const Slot slot = register_slot(operand, &width);
    if (!failed() && width != 1) refuse(fmt::format("{} is no predicate", operand.name));
    if (!operand.negated) {
        reads(slot);
        return slot;
    }
    Instruction invert;
    invert.run = invert_predicate;
    invert.d = temporary(1);
    invert.a = slot;
    prepare(invert, {slot}, {invert.d});
    reads(invert.d);
    return invert.d;
}

Slot Decoder::write_predicate(const ptx::Operand& operand) {
    if (operand.kind == Kind::kSink) return kSink;
    int width = 0;
    if (operand.kind != Kind::kRegister) {
        refuse("a predicate register belongs here");
        return {};
    }
    const Slot slot = register_slot(operand, &width);
    if (!failed() && width != 1) refuse(fmt::format("{} is no predicate", operand.name));
    writes(slot);
    return slot;
}

std::pair<Slot, Slot> Decoder::write_pair(const ptx::Operand& operand, ptx::Type first,
                                          bool first_predicate) {
    const auto one = [&](const ptx::Operand& each) {
        return first_predicate ? write_predicate(each) : write(each, first);
    };
    if (operand.kind != Kind::kPair) return {one(operand), kSink};
    const Slot left = one(operand.elements[0]);
    return {left, write_predicate(operand.elements[1])};
}

}  // namespace smt::runtime::device::simulated
