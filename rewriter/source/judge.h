// Which kernels become persistent, and why others do not.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewriter/device/reuse.h"
#include "rewriter/source/facts.h"
#include "rewriter/source/text.h"

namespace smt::rewriter::source {

struct Managed {
    const KernelFacts* facts = nullptr;
    std::vector<const Function*> functions;  // all that it may run and whose text is known, itself first
    std::string body;                        // name of the function that holds its body
    bool shared = false;                     // other functions read the block's index
    bool apart = false;                      // its threads may share memory: one block after the other
    bool overloaded = false;                 // another kernel has its name
    Reuse reuse = Reuse::kAlways;            // of a worker, for further blocks
    bool copies = false;                     // may leave copies running at its end
};

using Reasons = std::map<const Function*, std::string>;  // by the kernel's function

struct Verdict {
    std::vector<Managed> managed;  // in the order of the text
    Reasons refused;
};

// `banned` are refused for the reasons given. Templates without instantiations are in neither list.
Verdict judge(const Program& program, const Text& text, const Reasons& banned);

// "blur", "a lambda": for messages.
std::string name_of(const Function& function);

}  // namespace smt::rewriter::source
