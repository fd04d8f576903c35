// Decoded code: an array of instructions, each with the function that executes it and the places of
// its operands.
//
// A value of a warp is an array of 32 lanes side by side, so that a handler is a loop the compiler
// vectorises; a predicate is 32 bits. A Slot says where such an array lies: in the frame of the
// function, among the constants of the code (immediates are spread over 32 lanes when decoded), or
// among the special registers of the warp or its CTA. Reading an operand therefore never branches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/simulated/exec/cta.h"

namespace smt::runtime::device::simulated {

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAll = 0xffff'ffffu;

struct Execution;     // execution.h
struct Instruction;
using Handler = void (*)(Execution&, const Instruction&);

struct Slot {
    enum class Base : uint8_t { kFrame, kConstants, kWarp, kCta, kVirtual };   // kVirtual: while decoding
    uint32_t word = 0;

    Slot() = default;
    Slot(Base base, uint32_t offset) : word(static_cast<uint32_t>(base) << 29 | offset) {}
    Base base() const { return static_cast<Base>(word >> 29); }
    uint32_t offset() const { return word & 0x1fff'ffffu; }   // in bytes; kVirtual: the register's number
    bool operator==(const Slot&) const = default;
};
inline const Slot kSink{Slot::Base::kVirtual, 0x1fff'ffffu};   // `_`: a result nobody wants

struct Instruction {
    Handler run = nullptr;
    Slot d, a, b, c;
    Slot guard;
    bool guarded = false;
    bool negated = false;        // of the guard
    bool always = false;         // run() even when no lane passes the guard: control flow
    Unit unit = Unit::kInteger;
    Space space = Space::kNone;
    bool store = false;
    bool atomic = false;
    uint8_t count = 0;           // of the list
    uint32_t list = 0;           // first of further slots in Code::slots
    uint32_t target = 0;         // branches: where to; others: what the family makes of it
    int32_t line = 0;
    uint64_t value = 0;          // address offset, table index, truth table: what the family makes of it
};

// How one parameter of a call travels: from a register, constant or variable of the caller to one of
// the callee, or back.
struct Passing {
    enum class Kind : uint8_t { kSlot, kLocal };
    Kind from = Kind::kSlot;
    Kind to = Kind::kSlot;
    Slot slot_from, slot_to;
    uint32_t local_from = 0;     // offset in the variables of the one, and of the other
    uint32_t local_to = 0;
    uint32_t bytes = 0;
};

struct Code;
struct Call {
    uint32_t function = 0;           // index in the module; unused when indirect
    bool indirect = false;
    std::vector<Passing> arguments;  // slot_to and local_to of an indirect call: by position, see Signature
    std::vector<Passing> results;
};

// Where a function has its parameters and results; offsets of .local variables or registers.
struct Formal {
    Passing::Kind kind = Passing::Kind::kLocal;
    Slot slot;
    uint32_t local = 0;
    uint32_t bytes = 0;
};

enum class Builtin : uint8_t { kNone, kPrintf, kMalloc, kFree, kAssert };

struct Code {
    std::string name;
    bool kernel = false;
    Builtin builtin = Builtin::kNone;
    std::vector<Instruction> instructions;    // the last one leaves the function
    std::vector<StaticFacts> facts;           // of each
    std::vector<uint16_t> registers;          // what facts' spans point into
    std::vector<Slot> slots;                  // lists of operands
    std::vector<std::byte> constants;         // aligned by its owner: see constant_base
    std::byte* constant_base = nullptr;
    std::vector<uint32_t> reconvergence;      // of each instruction: where the ways of a branch meet again
    std::vector<Call> calls;
    std::vector<std::vector<uint32_t>> tables;   // of brx.idx
    std::vector<Formal> parameters, results;
    uint32_t frame_bytes = 0;
    uint32_t local_bytes = 0;                 // its own variables, per thread
    uint32_t live_words = 0;                  // most 32-bit registers alive at once
    uint32_t barriers = 0;                    // named barriers: highest used + 1
    std::vector<uint32_t> callees;            // functions called directly
    bool calls_unknown = false;
    uint32_t last() const { return static_cast<uint32_t>(instructions.size()) - 1; }
};

}  // namespace smt::runtime::device::simulated
