// What is known of a module's functions after one walk over each. The judge reads this; it does not walk
// again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx::persistent {

// How many threads take part in an operation.
enum class Width { kThread, kWarp, kBlock };

struct Facts {
    const Function* function = nullptr;
    std::string refusal;           // why no kernel that runs it can be managed
    std::string once;              // why its worker can run one block only; empty: many
    bool index = false;            // reads %ctaid or %nctaid
    Width width = Width::kThread;  // of the widest operation that it does
    bool shares = false;           // its threads may share memory or work with each other
    bool copies = false;           // starts cp.async, which may still run when it ends
    bool matrices = false;         // wgmma, tcgen05, tensor copies: their shared memory is aligned to 1024
    bool indirect = false;         // calls through a pointer
    bool sm = false, sms = false;  // reads %smid, %nsmid
    bool system = false;           // its atomics are for the whole system
    bool waits = false;            // it may wait for another block
    std::set<std::string> calls;   // aliases resolved
    std::set<std::string> names;   // variables, and functions whose address it takes
};

class ModuleFacts {
public:
    // Views the module.
    explicit ModuleFacts(const Module& module);

    const Facts* find(const std::string& function) const;  // null: only declared, or not at all
    // All that may run when `function` runs, itself first. What is only declared is left out.
    std::vector<const Facts*> reach(const std::string& function) const;
    // Called by `function` or by what it runs, and without a body here.
    std::set<std::string> unseen(const std::string& function) const;
    bool reads_index(const std::string& function) const;                   // it, or what it calls by name
    Width width_of(const std::string& function) const;                     // of it and all that it may run
    const std::set<std::string>& addressed() const { return addressed_; }  // what an indirect call may call
    std::string resolve(const std::string& name) const;                    // an alias's target
    bool has_name(const std::string& name) const {
        return names_.contains(name);
    }  // of anything in the module
    uint64_t shared_bytes(const std::vector<const Facts*>& functions) const;
    // Where these run, dynamic shared memory may be moved by a multiple of this. 0: the module has none.
    uint64_t dynamic_step(const std::vector<const Facts*>& functions) const;
    uint64_t dynamic_step() const;  // of all functions

private:
    std::set<std::string> called_by(const std::string& function, bool indirectly) const;

    std::map<std::string, Facts> functions_;
    std::map<std::string, std::string> aliases_;
    std::set<std::string> addressed_;
    std::map<std::string, const Variable*> shared_;  // of the module
    std::set<std::string> names_;
    bool dynamic_ = false;  // the module has dynamic shared memory
};

// Wide are barriers, votes, shuffles, matrices. Calls are not looked into.
Width width_of(const Instruction& instruction);

}  // namespace smt::ptx::persistent
