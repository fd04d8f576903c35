// Inside a Module: its parts, what their names stand for, and the programs decoded so far.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/layout.h"
#include "rewriter/ptx/syntax.h"
#include "runtime/device/simulated/exec/code.h"
#include "runtime/device/simulated/exec/kernel.h"

namespace smt::runtime::device::simulated {

struct Module::Linked {
    explicit Linked(Memory& memory) : memory(memory) {}
    ~Linked();

    struct Function {
        const ptx::Function* definition = nullptr;   // null: only declared
        const ptx::Function* declaration = nullptr;  // any of them
        uint32_t part = 0;
        Builtin builtin = Builtin::kNone;
        bool address_taken = false;
    };
    struct Variable {
        const ptx::Variable* variable = nullptr;
        uint32_t part = 0;
        uint64_t address = 0;  // of .global and .const
        uint64_t bytes = 0;
        bool moved = false;   // stands in memory of VariableMemory
        bool filled = false;  // with its value
    };
    struct Names {
        std::unordered_map<std::string, uint32_t> functions;
        std::unordered_map<std::string, uint32_t> variables;
    };
    struct Loaded {
        std::unique_ptr<Program> program;
        std::unique_ptr<DecodedKernel> kernel;
        std::optional<LoadError> error;
    };

    std::optional<LoadError> link(const ManagedMemory& managed, const VariableMemory& others);
    std::optional<uint32_t> find_function(uint32_t part, const std::string& name) const;
    const Variable* find_variable(uint32_t part, const std::string& name) const;
    const Loaded& load(const std::string& name, uint32_t number);

    Memory& memory;
    std::vector<ptx::Module> parts;
    std::vector<Function> functions;
    std::vector<Variable> variables;
    std::vector<Names> local;  // of each part: the names that other parts do not see
    Names shared;              // the others
    std::vector<Global> globals;
    std::map<std::string, Loaded, std::less<>> kernels;

private:
    std::optional<LoadError> add_names(uint32_t part);
    std::optional<LoadError> add(uint32_t part, const ptx::Function& function);
    std::optional<LoadError> add(uint32_t part, const ptx::Variable& variable);
    std::optional<LoadError> place_managed(const ManagedMemory& managed);
    void place_others(const VariableMemory& others);
    std::optional<LoadError> place(Variable& variable);
    std::optional<LoadError> initialise(const Variable& variable);
    void note_addresses();
    bool decode_reachable(Program& program, uint32_t from, std::optional<LoadError>& error);
};

}  // namespace smt::runtime::device::simulated
