// Turns the kernels of a PTX module into persistent form (rewriter/device/smt_worker.h).
//
// In: a module's text. Out: the text with every kernel twice (its own form as it was, and the managed form,
// with what reuse.h says before its name, and smt::Launch as its last parameter), and a line for each kernel:
// managed, or refused with a reason. The module is transformed as a whole, so its variables live once.
//
// A pure function of the text, which is not trusted: nothing in it crashes or hangs it. Any thread. Runs in
// the compile worker and in tools, never in the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rewriter/device/reuse.h"
#include "rewriter/ptx/effects.h"

namespace smt::ptx::persistent {

struct PersistentKernel {
    std::string name;
    std::string managed;  // name of the managed form; empty: refused
    std::string reason;   // why it was refused
    Reuse reuse = Reuse::kAlways;
    std::string limit;            // why it is not kAlways
    std::string form;             // of the loop: worker, free, shared, single, single_shared (forms.cu)
    std::string unchecked;        // why a block is not left before its end; empty: it is, or was not to be
    bool system_atomics = false;  // it, or what it calls, has atomics for the whole system (.sys)
    bool waits = false;           // likewise, and may wait for another block
    bool checked = false;         // it has checks inside
    Effects effects = {};  // of a checked one: blocks are left in launches that do not write what they read
};

struct Output {
    std::string text;                       // empty: no kernel is managed
    std::vector<PersistentKernel> kernels;  // in the module's order
    std::string reason;                     // why there is no text
};

// `inside`: kernels get checks inside their blocks where that is possible (inside.h).
Output persist(std::string_view text, bool inside = false);

}  // namespace smt::ptx::persistent
