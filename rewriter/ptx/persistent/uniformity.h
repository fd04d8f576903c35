// What the threads of a block, or of a warp, have in common in a register (rewriter/uniformity.h).
//
//   mov.u32 %r1, %ctaid.x;          kSame
//   mov.u32 %r2, %ntid.x;           kSame32 in a warp
//   mov.u32 %r3, %tid.x;            kLanes in a warp, kDiffers in a block
//   mad.lo.u32 %r4, %r1, %r2, %r3;  kLanes in a warp: a multiple of 32, and the lane's number
//   shr.u32 %r5, %r4, 5;            kSame in a warp
//
// Of a warp all this holds where a block's width (%ntid.x) is a multiple of 32: a warp's threads then have
// %tid.y and %tid.z in common, and 32 numbers %tid.x in a row.
#pragma once

#include <vector>

#include "rewriter/ptx/syntax.h"
#include "rewriter/uniformity.h"

namespace smt::ptx::persistent {

enum class Team : uint8_t { kBlock, kWarp };  // whose threads

using rewriter::may_differ;
using rewriter::Uniformity;

Uniformity uniformity_of(const Operand& special, Team team);  // a special register

// Of what an instruction computes from nothing but its operands, which have these uniformities (without the
// first one, which it writes).
Uniformity result_of(const Instruction& instruction, const std::vector<Uniformity>& inputs);

}  // namespace smt::ptx::persistent
