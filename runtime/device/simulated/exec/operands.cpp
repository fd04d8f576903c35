// The decoder's view of operands: which slot a register, constant, special register or address has.
#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

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
    auto [at, fresh] = constants_.try_emplace({bits, 0, width}, Slot());
    if (!fresh) return at->second;
    const size_t bytes = static_cast<size_t>(width) / 8;
    const size_t offset = (code_.constants.size() + 15) / 16 * 16;
    code_.constants.resize(offset + bytes * kLanes);
    for (int i = 0; i < kLanes; ++i) std::memcpy(&code_.constants[offset + static_cast<size_t>(i) * bytes], &bits, bytes);
    return at->second = Slot(Slot::Base::kConstants, static_cast<uint32_t>(offset));
}

Slot Decoder::constant128(uint64_t low, uint64_t high) {
    auto [at, fresh] = constants_.try_emplace({low, high, 128}, Slot());
    if (!fresh) return at->second;
    const size_t offset = (code_.constants.size() + 15) / 16 * 16;
    code_.constants.resize(offset + 16 * kLanes);
    for (size_t i = 0; i < kLanes; ++i) {
        std::memcpy(&code_.constants[offset + i * 16], &low, 8);
        std::memcpy(&code_.constants[offset + i * 16 + 8], &high, 8);
    }
    return at->second = Slot(Slot::Base::kConstants, static_cast<uint32_t>(offset));
}

Slot Decoder::predicate_constant(bool value) { return constant(value ? kAll : 0, 32); }   // its first word

std::optional<uint64_t> Decoder::immediate(const ptx::Operand& operand) const {
    if (operand.kind != Kind::kInteger) return std::nullopt;
    return operand.bits;
}

uint64_t Decoder::immediate_bits(const ptx::Operand& operand, ptx::Type type) {
    if (operand.kind == Kind::kInteger) {
        if (type == ptx::Type::kF32 || type == ptx::Type::kF64) refuse("an integer constant where a floating-point one belongs");
        return operand.bits;
    }
    const bool single = operand.kind == Kind::kFloat32;
    const double value = single ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(operand.bits)))
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
        case Kind::kFloat64: return constant(immediate_bits(operand, type), *width);
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
        default: refuse("an operand of this form is not supported"); return {};
    }
}

Slot Decoder::read(const ptx::Operand& operand, ptx::Type type) {
    int width = 0;
    const Slot slot = read_any(operand, type, &width);
    if (!failed() && width != storage(type))
        refuse(fmt::format("{} has {} bits, .{} has {}", operand.name, width, ptx::name(type), ptx::bits(type)));
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
        refuse(fmt::format("{} has {} bits, .{} has {}", operand.name, width, ptx::name(type), ptx::bits(type)));
    return slot;
}

namespace {

void invert_predicate(Execution& x, const Instruction& in) { x.set_predicate(in.d, ~x.predicate(in.a)); }

}  // namespace

Slot Decoder::read_predicate(const ptx::Operand& operand) {
    if (operand.kind == Kind::kInteger) return predicate_constant((operand.bits != 0) != operand.negated);
    if (operand.kind == Kind::kSpecial) return predicate_constant(operand.negated);   // %is_explicit_cluster: no
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

std::pair<Slot, Slot> Decoder::write_pair(const ptx::Operand& operand, ptx::Type first, bool first_predicate) {
    const auto one = [&](const ptx::Operand& each) { return first_predicate ? write_predicate(each) : write(each, first); };
    if (operand.kind != Kind::kPair) return {one(operand), kSink};
    const Slot left = one(operand.elements[0]);
    return {left, write_predicate(operand.elements[1])};
}

// ---- special registers

Slot Decoder::resize(Slot slot, int from, int to) {
    if (from == to) return slot;
    Instruction in;
    if (from == 32 && to == 64) in.run = lanewise<uint64_t, uint32_t>([](uint32_t a) { return static_cast<uint64_t>(a); });
    if (from == 32 && to == 16) in.run = lanewise<uint16_t, uint32_t>([](uint32_t a) { return static_cast<uint16_t>(a); });
    if (from == 64 && to == 32) in.run = lanewise<uint32_t, uint64_t>([](uint64_t a) { return static_cast<uint32_t>(a); });
    if (from == 64 && to == 16) in.run = lanewise<uint16_t, uint64_t>([](uint64_t a) { return static_cast<uint16_t>(a); });
    if (in.run == nullptr) {
        refuse("an operand of this width is not supported here");
        return slot;
    }
    in.d = temporary(to);
    in.a = slot;
    prepare(in, {slot}, {in.d});
    return in.d;
}

Slot Decoder::special32(const ptx::Operand& operand) {
    const uint32_t component = operand.component > 0 ? static_cast<uint32_t>(operand.component) : 0;
    const auto xyz = [&](auto first, uint32_t fourth = 0) {
        using Value = decltype(first);
        if (component == 3) return constant(fourth, 32);
        return slot_of(static_cast<Value>(static_cast<uint32_t>(first) + component));
    };
    using ptx::Special;
    switch (operand.special) {
        case Special::kTid: return xyz(WarpValue::kTidX);
        case Special::kNtid: return xyz(CtaValue::kNtidX);
        case Special::kCtaid:
        case Special::kClusterid: return xyz(CtaValue::kCtaX);
        case Special::kNctaid:
        case Special::kNclusterid: return xyz(CtaValue::kNctaX);
        case Special::kLaneid: return slot_of(WarpValue::kLane);
        case Special::kWarpid: return slot_of(WarpValue::kWarp);
        case Special::kNwarpid: return slot_of(CtaValue::kWarps);
        case Special::kSmid: return slot_of(CtaValue::kSm);
        case Special::kNsmid: return slot_of(CtaValue::kSms);
        case Special::kClusterCtaid:
        case Special::kClusterCtarank: return slot_of(CtaValue::kZero);
        case Special::kClusterNctaid:
        case Special::kClusterNctarank: return component == 3 ? constant(0, 32) : slot_of(CtaValue::kOne);
        case Special::kLanemaskEq: return slot_of(WarpValue::kMaskEq);
        case Special::kLanemaskLe: return slot_of(WarpValue::kMaskLe);
        case Special::kLanemaskLt: return slot_of(WarpValue::kMaskLt);
        case Special::kLanemaskGe: return slot_of(WarpValue::kMaskGe);
        case Special::kLanemaskGt: return slot_of(WarpValue::kMaskGt);
        case Special::kTotalSmemSize:
        case Special::kAggrSmemSize: return slot_of(CtaValue::kSharedTotal);
        case Special::kDynamicSmemSize: return slot_of(CtaValue::kSharedDynamic);
        case Special::kReservedSmemOffsetBegin:
        case Special::kReservedSmemOffset0: program_.reserved_shared = true; return slot_of(CtaValue::kReserved0);
        case Special::kReservedSmemOffset1: program_.reserved_shared = true; return slot_of(CtaValue::kReserved1);
        case Special::kReservedSmemOffsetEnd:
        case Special::kReservedSmemOffsetCap: program_.reserved_shared = true; return slot_of(CtaValue::kReservedEnd);
        case Special::kEnvreg:
            if (operand.bits == 1) return slot_of(CtaValue::kEnvironment1);
            if (operand.bits == 2) return slot_of(CtaValue::kEnvironment2);
            return slot_of(CtaValue::kZero);
        default: break;
    }
    refuse(fmt::format("{} is not supported", ptx::name(operand.special)));
    return {};
}

Slot Decoder::special(const ptx::Operand& operand, int width) {
    Instruction in;
    in.unit = Unit::kSpecial;
    in.run = special_reader(operand.special);
    if (in.run != nullptr) {   // one that changes while the kernel runs, or of 64 bits
        in.d = temporary(64);
        prepare(in, {}, {in.d});
        return resize(in.d, 64, width);
    }
    return resize(special32(operand), 32, width);
}

// ---- symbols and addresses

std::optional<uint32_t> Decoder::find_function(const std::string& name) const { return linked_.find_function(part_, name); }

std::optional<Symbol> Decoder::find_symbol(const std::string& name) const {
    if (const Symbol* found = find(&Names::symbols, name)) return *found;
    const Module::Linked::Variable* variable = linked_.find_variable(part_, name);
    if (variable == nullptr) return std::nullopt;
    if (variable->variable->space == ptx::Space::kShared) return const_cast<Decoder*>(this)->shared_symbol(*variable->variable);
    const bool constant = variable->variable->space == ptx::Space::kConstant;
    return Symbol{constant ? Space::kConstant : Space::kGlobal, variable->address, variable->bytes, false, false, variable->variable};
}

namespace {

template <class T>
void address_in_frame(Execution& x, const Instruction& in) {
    const T base = static_cast<T>(frame_variables(x) + in.value);
    for_lanes(x.mask, [&](int i) { x.at<T>(in.d)[i] = base; });
}

template <class T>
void address_behind_static(Execution& x, const Instruction& in) {
    const T base = static_cast<T>(*x.at<uint32_t>(slot_of(CtaValue::kDynamicBase)) + in.value);
    for_lanes(x.mask, [&](int i) { x.at<T>(in.d)[i] = base; });
}

}  // namespace

Slot Decoder::symbol_address(const ptx::Operand& operand, int width) {
    auto symbol = find_symbol(operand.name);
    if (!symbol) {
        if (auto number = find_function(operand.name)) return constant(function_address(*number), width);
        refuse(fmt::format("{} is not defined", operand.name));
        return {};
    }
    const uint64_t address = symbol->address + static_cast<uint64_t>(operand.offset);
    if (!symbol->in_frame && !symbol->dynamic_shared) return constant(address, width);
    if (width != 32 && width != 64) {
        refuse("an address has 32 or 64 bits");
        return {};
    }
    Instruction in;
    in.run = symbol->in_frame ? (width == 64 ? address_in_frame<uint64_t> : address_in_frame<uint32_t>)
                              : (width == 64 ? address_behind_static<uint64_t> : address_behind_static<uint32_t>);
    in.value = address;
    in.d = temporary(width);
    prepare(in, {}, {in.d});
    return in.d;
}

Address Decoder::read_address(const ptx::Operand& operand) {
    Address address;
    if (operand.kind != Kind::kAddress || operand.elements.empty()) {
        refuse("an address belongs here");
        return address;
    }
    const ptx::Operand& base = operand.elements[0];
    address.offset = operand.offset;
    if (base.kind == Kind::kInteger) {
        address.offset += static_cast<int64_t>(base.bits);
        return address;
    }
    if (base.kind == Kind::kSymbol) {
        if (auto symbol = find_symbol(base.name); symbol && !symbol->dynamic_shared) {
            address.symbol = *symbol;
            address.offset += base.offset + static_cast<int64_t>(symbol->address);
            return address;
        }
    }
    if (base.kind == Kind::kRegister) address.wide = register_width(base) == 64;
    address.base = read(base, address.wide ? ptx::Type::kB64 : ptx::Type::kB32);
    if (base.kind == Kind::kSymbol) {
        address.symbol.space = Space::kShared;   // the dynamic part; its offset is in the base
        address.symbol.dynamic_shared = true;
    }
    return address;
}

Place Decoder::place_of(const ptx::Operand& operand, const ptx::Variable& formal, bool result) {
    Place place;
    place.bytes = static_cast<uint32_t>(bytes_of(formal));
    if (operand.kind == Kind::kSymbol) {
        auto symbol = find_symbol(operand.name);
        if (symbol && symbol->space == Space::kLocal && symbol->variable->space == ptx::Space::kParameter) {
            place.local = true;
            place.offset = static_cast<uint32_t>(symbol->address);
            place.bytes = std::min<uint32_t>(place.bytes, static_cast<uint32_t>(symbol->bytes));
            return place;
        }
    }
    if (operand.kind == Kind::kSink) {
        place.slot = kSink;
        return place;
    }
    if (ptx::bits(formal.type) == 1) {
        place.bytes = 0;
        place.slot = result ? write_predicate(operand) : read_predicate(operand);
        return place;
    }
    if (!formal.dimensions.empty()) {
        refuse("an array is passed in a .param variable");
        return place;
    }
    place.slot = result ? write(operand, formal.type) : read(operand, formal.type);
    return place;
}

}  // namespace smt::runtime::device::simulated
