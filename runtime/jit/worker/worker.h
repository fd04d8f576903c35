// The compile worker's work: orders come on a descriptor, results go back on it.
#pragma once

#include <cstdint>

#include "runtime/jit/opened.h"
#include "runtime/jit/source.h"
#include "runtime/jit/worker/doors.h"
#include "runtime/jit/worker/nvrtc.h"
#include "runtime/jit/worker/rewriter.h"

namespace smt::runtime::jit {

// Rewrites the source, or the PTX, and compiles what came out. Managed forms are held to the registers of the
// kernels' own forms (registers.h).
Result work(const Order& order, const Nvrtc& nvrtc, Rewrite rewrite);

using Open = Opened (*)(const OpenOrder&, std::string_view image);

// main() of the worker, with the rewriter or, in tests, something in its place:
//   smt-compile --descriptor N --memory BYTES --cpu SECONDS [--shared N]
// With memory that it shares with the server (shared.h) it opens images and compiles nothing.
// Ends when the other end of the descriptor is closed, or its parent dies.
int worker_main(int count, char** arguments, Rewrite rewrite, Open open = open_with_doors);

}  // namespace smt::runtime::jit
