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

struct Execution;  // execution.h
struct Instruction;
using Handler = void (*)(Execution&, const Instruction&);

struct Slot {
    enum class Base : uint8_t { kFrame, kConstants, kWarp, kCta, kVirtual };  // kVirtual: while decoding
    uint32_t word = 0;

    Slot() = default;
    Slot(Base base, uint32_t offset) : word(static_cast<uint32_t>(base) << 29 | offset) {}
    Base base() const { return static_cast<Base>(word >> 29); }
    uint32_t offset() const { return word & 0x1fff'ffffu; }  // in bytes; kVirtual: the register's number
    bool operator==(const Slot&) const = default;
};
inline const Slot kSink{Slot::Base::kVirtual, 0x1fff'ffffu};  // `_`: a result that is dropped

struct Instruction {
    Handler run = nullptr;
    Slot d, a, b, c;
    Slot guard;
    bool guarded = false;
    bool negated = false;  // of the guard
    bool always = false;   // run() even when no lane passes the guard: control flow
    Unit unit = Unit::kInteger;
    Space space = Space::kNone;
    bool store = false;
    bool atomic = false;
    uint8_t count = 0;    // of the list
    uint32_t list = 0;    // first of further slots in Code::slots
    uint32_t target = 0;  // branches: where to; others: what the family makes of it
    int32_t line = 0;
    uint64_t value = 0;  // address offset, table index, truth table: what the family makes of it
};

// Where a parameter or result stands, on the caller's side or on the callee's: in a slot, or among the
// variables of the function, which lie in local memory.
struct Place {
    bool local = false;
    Slot slot;
    uint32_t offset = 0;  // from the frame's variables
    uint32_t bytes = 0;
};

struct Call {
    uint32_t function = 0;  // number in the module; unused when indirect
    bool indirect = false;
    std::vector<Place> arguments, results;
};

enum class Builtin : uint8_t { kNone, kPrintf, kMalloc, kFree, kAssert };

// A kernel and every function it can reach, laid out together: shared variables have their places per
// program, so a function that two kernels call is decoded twice.
struct Program {
    std::vector<std::unique_ptr<Code>> functions;  // by number in the module; null: not reachable
    std::vector<std::string> refusals;             // by number: why a function that may be called cannot be
    std::vector<std::pair<uint64_t, uint64_t>> constants;  // address ranges of .const variables
    std::map<const void*, uint32_t> shared_places;         // of the variables met so far
    uint32_t shared_bytes = 0;
    uint32_t shared_alignment = 1;  // of the dynamic part
    bool dynamic_shared = false;
    bool reserved_shared = false;  // it looks for the system's part
    bool calls_unknown = false;
};

struct Code {
    std::string name;
    const Program* program = nullptr;
    bool kernel = false;
    Builtin builtin = Builtin::kNone;
    std::vector<Instruction> instructions;  // the last one leaves the function
    std::vector<StaticFacts> facts;         // of each
    std::vector<uint16_t> registers;        // what facts' spans point into
    std::vector<Slot> slots;                // lists of operands
    std::vector<std::byte> constants;       // aligned by its owner: see constant_base
    std::byte* constant_base = nullptr;
    std::vector<uint32_t> reconvergence;  // of each instruction: where the ways of a branch meet again
    std::vector<Call> calls;
    std::vector<std::vector<uint32_t>> tables;  // of brx.idx
    std::vector<Place> parameters, results;
    uint32_t frame_bytes = 0;
    uint32_t local_bytes = 0;  // its own variables, per thread
    uint32_t live_words = 0;   // most 32-bit registers alive at once
    uint32_t barriers = 0;     // named barriers: highest used + 1
    uint32_t last() const { return static_cast<uint32_t>(instructions.size()) - 1; }
};

}  // namespace smt::runtime::device::simulated
