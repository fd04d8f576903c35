// PTX to machine code, as the driver's compiler makes it: nvPTXCompiler, which is linked in where the toolkit
// has it. It compiles a text as a whole; what nvJitLink makes of one is relocatable, and takes up to 1.6
// times as long on the GPU.
#pragma once

#include "runtime/jit/source.h"

namespace smt::runtime::jit {

// Of the order's one input (Language::kAssembly). The logs are the compiler's, with all their lines.
Result compile_ptx(const Order& order);

}  // namespace smt::runtime::jit
