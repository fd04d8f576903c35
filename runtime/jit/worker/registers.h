// Managed PTX with limits to its registers, such that as many blocks fit an SM as of the program's own
// kernel.
//
// With the loop around it a kernel may be given more registers than its own form has, and fewer of its blocks
// would fit. So kernels are held to what the hardware hands out for the own form's number (in eights, and 32
// at least: with so few all threads fit that an SM can have). What comes of it is assembled and looked at: a
// kernel of which nothing was known is held to its own form's number there, and one that spills much is let
// have eight more, twice at most. On an H200 a block less cost 16 to 22 % where 8 and 24 bytes were spilled
// (molecular_dynamics, cfd), which cost 0 to 6 %; where 64 were (stencil3d), spilling cost 28 %, and two
// blocks less nothing.
//
// What was assembled is only looked at: nvJitLink does not know where shared memory will stand, and its code
// took up to 1.6 times as long. The driver knows, and makes the code that runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/image/kernel_facts.h"
#include "runtime/jit/source.h"
#include "runtime/jit/worker/assembler.h"

namespace smt::runtime::jit {

using Registers = std::map<std::string, uint32_t>;  // of a thread, by kernel
using Facts = std::map<std::string, image::KernelFacts>;

// Of the cubin's kernels; what cannot be read has none.
Facts facts_of(std::string_view cubin);

// Whether a managed form in the cubin has more registers than its own form lets it. `known`: of the program's
// own machine code; where it says nothing of a kernel, the cubin's own form counts.
bool exceeds(std::string_view cubin, const std::vector<CompiledKernel>& kernels, const Registers& known);

// Where it cannot be assembled `reason` says why, and all kernels are held of which something is known.
std::string hold_registers(const std::string& text, const std::vector<CompiledKernel>& kernels,
                           const Registers& known, const std::string& architecture,
                           const Assembler& assembler, std::string& reason);

// Without a look at machine code.
std::string hold_registers(const std::string& text, const std::vector<CompiledKernel>& kernels,
                           const Registers& known);

}  // namespace smt::runtime::jit
