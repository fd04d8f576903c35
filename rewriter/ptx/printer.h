// A syntax tree to PTX text that ptxas accepts and that parses to an equal tree.
#pragma once

#include <string>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx {

std::string print(const Module& module);

// One instruction as in the text, without ';': for messages.
std::string print(const Instruction& instruction);

}  // namespace smt::ptx
