// Which kernels become persistent, in which form, and why others do not.
#pragma once

#include <string>

#include "rewriter/device/reuse.h"
#include "rewriter/ptx/persistent/facts.h"
#include "rewriter/ptx/persistent/forms.h"

namespace smt::ptx::persistent {

struct Verdict {
    std::string refusal;  // empty: it can be managed
    Reuse reuse = Reuse::kAlways;
    std::string limit;  // why it is not kAlways
    FormKind form = FormKind::kWorker;
    bool copies = false;           // may leave copies running at its end
    std::set<std::string> copied;  // functions that read the block's index, or call such: it needs its own
};

Verdict judge(const Function& entry, const Module& module, const ModuleFacts& facts);

}  // namespace smt::ptx::persistent
