// Puts a kernel's body into a form of the persistent loop, and makes copies of functions that read the
// block's index.
//
//   .visible .entry smt_k(parameters of k, .param .align 8 .b8 smt_launch[56]) {
//       the form, up to its place
//       { .reg .b32 %smt_block<3>; ...
//           { the body of k: %ctaid.x is %smt_block0, ret is bra $smt_done }
//   $smt_done:
//       }
//       the rest of the form
//   }
//
// Where a worker runs one block (kSingle), what the form has behind its place is how a thread ends. It stands
// in place of each return, not behind a label that all share: there an assembler would have the threads of a
// warp wait for each other, and one that leaves would wait for one that waits at a barrier for it.
#pragma once

#include <string>

#include "rewriter/ptx/persistent/judge.h"

namespace smt::ptx::persistent {

inline constexpr const char* kPrefix = "smt_";  // of functions' copies, and of all managed forms

std::string managed_name(const std::string& kernel, const Verdict& verdict);

std::string copy_name(const std::string& function);

Function compose(const Function& entry, const Verdict& verdict, const ModuleFacts& facts);

// smt_f: reads the block's index where the loop keeps it, and calls copies in its turn.
Function copy_function(const Function& function, const std::set<std::string>& copied,
                       const ModuleFacts& facts);

}  // namespace smt::ptx::persistent
