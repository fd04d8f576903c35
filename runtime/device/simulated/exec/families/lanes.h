// Small helpers that families share: from a PTX type to the C++ type of a lane, and operands in the
// usual order.
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/device/simulated/exec/execution.h"
#include "runtime/device/simulated/exec/table.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Type;

// The type in which T may overflow: no promotion to a signed int, no undefined behaviour.
template <class T>
using Wrap = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
constexpr Wrap<T> wrap(T value) {
    return static_cast<Wrap<T>>(value);
}

// f is a template over the lane's type: for_integers(type, []<class T>() { return lanewise<T, T, T>(...); }).
template <class F>
Handler for_integers(Type type, F f) {
    switch (type) {
        case Type::kB16:
        case Type::kU16:
            return f.template operator()<uint16_t>();
        case Type::kS16:
            return f.template operator()<int16_t>();
        case Type::kB32:
        case Type::kU32:
            return f.template operator()<uint32_t>();
        case Type::kS32:
            return f.template operator()<int32_t>();
        case Type::kB64:
        case Type::kU64:
            return f.template operator()<uint64_t>();
        case Type::kS64:
            return f.template operator()<int64_t>();
        default:
            return nullptr;
    }
}

// By width alone.
template <class F>
Handler for_bits(Type type, F f) {
    switch (ptx::bits(type)) {
        case 16:
            return f.template operator()<uint16_t>();
        case 32:
            return f.template operator()<uint32_t>();
        case 64:
            return f.template operator()<uint64_t>();
        default:
            return nullptr;
    }
}

inline void read_two(Decoder& d, const ptx::Instruction& s, Instruction& in, Type type) {
    in.a = d.read(s.operands[1], type);
    in.b = d.read(s.operands[2], type);
}

inline void read_three(Decoder& d, const ptx::Instruction& s, Instruction& in, Type type) {
    read_two(d, s, in, type);
    in.c = d.read(s.operands[3], type);
}

// d = f(a), d = f(a, b), d = f(a, b, c) on integers of the instruction's type.
template <class F>
void integer_unary(Decoder& d, const ptx::Instruction& s, Instruction& in, F f) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = for_integers(s.types[0], [f]<class T>() { return lanewise<T, T>(f); });
}

template <class F>
void integer_binary(Decoder& d, const ptx::Instruction& s, Instruction& in, F f) {
    read_two(d, s, in, s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = for_integers(s.types[0], [f]<class T>() { return lanewise<T, T, T>(f); });
}

template <class F>
void integer_ternary(Decoder& d, const ptx::Instruction& s, Instruction& in, F f) {
    read_three(d, s, in, s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = for_integers(s.types[0], [f]<class T>() { return lanewise<T, T, T, T>(f); });
}

// Two 16-bit values in 32 bits, each by itself.
template <class T, class F>
uint32_t by_halves(uint32_t a, uint32_t b, F f) {
    const auto half = [&](int shift) {
        return static_cast<uint32_t>(
                   static_cast<uint16_t>(f(static_cast<T>(a >> shift), static_cast<T>(b >> shift))))
               << shift;
    };
    return half(0) | half(16);
}

}  // namespace smt::runtime::device::simulated
