// The checks of one function.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rewriter/ptx/fence/accesses.h"
#include "rewriter/ptx/fence/registers.h"
#include "rewriter/ptx/syntax.h"

namespace smt::ptx::fence {

// Of the module: variables with an address and a size, by name.
using Variables = std::map<std::string, Variable>;

class Checks {
public:
    // `number`: the function's, for records.
    Checks(const Variables& variables, const Function& function, uint32_t number, int architecture);

    // Why the function cannot be fenced, in words that follow "it"; empty: it can.
    const std::string& refusal() const { return refusal_; }
    // The body with its checks. Not of one that was refused.
    Scope body() const;

    uint64_t accesses() const { return accesses_; }
    uint64_t checks() const { return checks_; }

private:
    // A check in front of a statement: of the bytes between the lowest and the highest access by `base`.
    struct Check {
        Access access;     // the first one, whose bytes and alignment count for all
        std::string base;  // a register, or a variable of which the address is taken
        bool is_symbol = false;
        int64_t low = 0, high = 0;  // offsets of the first and of the last access
        const Guard* guard = nullptr;
    };
    struct Plan {
        std::vector<Check> checks;
        bool waits = false;  // behind it: whether there is a record
        int error = 0;       // in its place
    };

    void refuse(const std::string& reason);
    void read(const Scope& scope);
    void read(const Instruction& instruction, Plan& plan);
    void add(const Instruction& instruction, const Access& access, Plan& plan);
    bool joins(const Check& check, Plan& plan);
    // Why an access of a variable by its name cannot be checked; and whether it lies in the variable.
    std::string refuse_variable(const Access& access, const std::string& name, bool within) const;
    bool is_within(const Access& access, const std::string& name, int64_t offset) const;
    const Variable* variable(const std::string& name) const;
    Scope rewritten(const Scope& scope) const;
    std::string text_of(const Check& check) const;
    Statement parsed(const Check& check) const;

    const Variables& module_;
    Variables own_;
    std::set<std::string> several_;  // names of more than one variable
    const Function& function_;
    const uint32_t number_;
    const int architecture_;
    const Registers registers_;
    std::string refusal_;
    std::map<const Instruction*, Plan> plans_;
    std::map<std::string, std::pair<const Instruction*, size_t>> open_;  // checks that more may join, by key
    uint64_t accesses_ = 0, checks_ = 0;
    bool uses_shared_ = false, uses_global_ = false;
};

}  // namespace smt::ptx::fence
