// The registers of a function, by their names.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx::fence {

class Registers {
public:
    explicit Registers(const Scope& body);

    // None: it is not declared, or in two scopes with different types.
    std::optional<Type> type_of(const std::string& name) const;

private:
    void note(std::map<std::string, std::optional<Type>>& types, const std::string& name, Type type);

    std::map<std::string, std::optional<Type>> single_;
    std::map<std::string, std::optional<Type>> numbered_;  // by the name without its number
};

// Whether it has results, and this register is among them. In doubt it is.
bool may_change(const Instruction& instruction, const std::string& name);

}  // namespace smt::ptx::fence
