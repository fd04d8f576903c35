// The rules: each knows one construct, can say why it must be left alone, and makes its edits. One file each.
//
//   rule_entry.cpp         the kernel's definition becomes a body and two kernels that call it
//   rule_declarations.cpp  declarations and friends of a kernel get the same for the managed form
//   rule_block_index.cpp   functions and lambdas that read blockIdx or gridDim
//   rule_early_return.cpp  returns ahead of a barrier
//   rule_asm.cpp           inline PTX that reads %ctaid or %nctaid
//
// refuse_*: the reason in words, or nothing. edit_*: only for what no rule refused.
#pragma once

#include <string>

#include "rewriter/source/edits.h"
#include "rewriter/source/facts.h"
#include "rewriter/source/judge.h"
#include "rewriter/source/text.h"

namespace smt::rewriter::source {

std::string refuse_entry(const KernelFacts& kernel, const Text& text);
void edit_entry(const Managed& managed, const Text& text, Edits& edits);

void edit_declarations(const Managed& managed, const Text& text, Edits& edits);

std::string refuse_reads(const Function& function, const Text& text);
bool reads_shared_index(const Function& function);
bool shares_index(const Managed& managed);
void edit_reads(const Managed& managed, const Text& text, Edits& edits);

// Whether a thread may return from this kernel while others go on to a barrier, or to an operation of the
// whole warp: kAlways: none does; kByWarps: none does while others of its warp go on, where blocks are whole
// warps wide.
Reuse reuse_after_returns(const Program& program, const Function& kernel, const Text& text);
std::string refuse_early_returns(const Function& kernel, const Text& text);
void edit_early_returns(const Function& kernel, const Text& text, Edits& edits);

std::string refuse_asm(const Function& function, const Text& text);
void edit_asm(const Function& function, const Text& text, Edits& edits);

}  // namespace smt::rewriter::source
