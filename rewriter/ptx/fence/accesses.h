// What an instruction accesses, or why a fence cannot be put around it.
#pragma once

#include <string>
#include <vector>

#include "rewriter/device/fence.h"
#include "rewriter/ptx/syntax.h"

namespace smt::ptx::fence {

struct Access {
    const Operand* address = nullptr;  // kAddress, of the instruction
    FenceSpace space = FenceSpace::kGlobal;
    FenceUse use = FenceUse::kLoad;
    uint32_t bytes = 0;
    const Operand* unless_zero = nullptr;  // a register: where it is 0 nothing is accessed
};

struct Effect {
    std::string refusal;           // in words that follow "it"; empty: the rest counts
    std::vector<Access> accesses;  // of the memory that has to be checked
    bool waits = false;            // it may be what a thread asks again and again until another one answers
    int error = 0;                 // it ends the launch, with this CUresult
};

// Of one instruction by itself. Local memory, parameters and constants are not among the accesses.
Effect effect_of(const Instruction& instruction);

}  // namespace smt::ptx::fence
