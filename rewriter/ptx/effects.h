// What a kernel reads and writes in global memory, by the parameters that have the addresses, so that it is
// known whether a launch may be repeated from its beginning.
//
//   ld.param.u64 %rd1, [k_param_0];
//   cvta.to.global.u64 %rd2, %rd1;
//   add.s64 %rd3, %rd2, %rd9;           %rd9: a product, so no address
//   ld.global.f32 %f1, [%rd3];          reads by the parameter at 0
//
// A register has the origins of all that is ever written to it, whatever the order. An address is known if
// its only origins are parameters; of several, one has the address, and the launch's values tell which. A
// product, a quotient and a shifted value are taken for no address. A pointer stays in the memory that the
// parameter points into, as C++ demands.
//
// In doubt it is refused: atomics (but for those of shared memory whose order makes no difference: all of one
// operation on integers, with results that nothing reads), accesses that are volatile or ordered, which other
// blocks or programs may answer, fences, calls, textures, registers of which the value depends on place or
// time (%smid, %clock), and what may end the context (trap). What is left computes the same whenever it reads
// the same.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/syntax.h"

namespace smt::ptx {

// One of these 64-bit words of the parameter buffer, by their offsets, has the address.
using Origins = std::set<uint32_t>;

struct Effects {
    std::string refusal;  // why a launch cannot be repeated; empty: it may be, as far as the kernel goes
    std::set<Origins> reads, writes;
    bool operator==(const Effects&) const = default;
};

Effects effects_of(const Module& module, const Function& kernel);

// Of all kernels of a text, by name. Diagnostic: it cannot be parsed.
[[nodiscard]] std::variant<std::map<std::string, Effects>, Diagnostic> effects_in(std::string_view text);

}  // namespace smt::ptx
