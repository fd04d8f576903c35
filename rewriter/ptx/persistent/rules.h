// What single instructions mean for a kernel that is to become persistent.
#pragma once

#include <string>

#include "rewriter/ptx/persistent/facts.h"

namespace smt::ptx::persistent {

// Adds to `facts` why a kernel with this instruction cannot be managed (refusal), why its worker can run one
// block only (once), and copies. The first reason of each stays.
void judge_instruction(const Instruction& instruction, Facts& facts);

// Of a function that is only declared; empty: it is one of the system's, which do no harm.
std::string refuse_unseen(const std::string& function);

// Of a kernel's declaration; empty: it is fine.
std::string refuse_entry(const Function& entry, const Module& module);

// Of a module as a whole.
std::string refuse_module(const Module& module);

}  // namespace smt::ptx::persistent
