// From the syntax tree of one function to its Code.
//
// First every statement becomes instructions over virtual registers: the row of the instruction table
// that fits is asked to fill in the handler and the operands, through read() and write(). Then flow.cpp
// finds where branches meet again and which registers can share a place, and the virtual slots are
// replaced. Errors stick: the first one is kept, and what is returned after it has no meaning.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewriter/ptx/syntax.h"
#include "runtime/device/simulated/exec/code.h"
#include "runtime/device/simulated/exec/flow.h"
#include "runtime/device/simulated/exec/linked.h"

namespace smt::runtime::device::simulated {

// What a name stands for when it is no register.
struct Symbol {
    Space space = Space::kNone;
    uint64_t address = 0;  // global: the address; shared, local, parameter: an offset
    uint64_t bytes = 0;
    bool in_frame = false;        // local: counted from the variables of this call
    bool dynamic_shared = false;  // counted from the end of the static variables
    const ptx::Variable* variable = nullptr;
};

// An address operand: base (absent: none) + offset, perhaps in the frame.
struct Address {
    std::optional<Slot> base;
    bool wide = true;  // base holds 64 bits, not 32
    int64_t offset = 0;
    Symbol symbol;  // of space kNone: there is none
};

class Decoder {
public:
    Decoder(Module::Linked& linked, Program& program, const ptx::Function& function, Code& code);
    void set_part(uint32_t part) { part_ = part; }
    std::optional<LoadError> run();

    // Operands. The width of a register must be the type's, or for the _any forms at least as wide
    // (`width` tells). Immediates take the type's form, special registers are read as the type.
    Slot read(const ptx::Operand& operand, ptx::Type type);
    Slot read_any(const ptx::Operand& operand, ptx::Type type, int* width);
    Slot read_predicate(const ptx::Operand& operand);  // handles !p
    Slot write(const ptx::Operand& operand, ptx::Type type);
    Slot write_any(const ptx::Operand& operand, ptx::Type type, int* width);
    Slot write_predicate(const ptx::Operand& operand);
    // The two results of p|q; kSink where there is none.
    std::pair<Slot, Slot> write_pair(const ptx::Operand& operand, ptx::Type first, bool first_predicate);
    Address read_address(const ptx::Operand& operand);
    Slot constant(uint64_t bits, int width);
    Slot predicate_constant(bool value);
    std::optional<uint64_t> immediate(const ptx::Operand& operand) const;
    int register_width(const ptx::Operand& operand);  // 0: no register; 1: a predicate

    Slot temporary(int width);  // 1: a predicate
    Slot carry();               // the condition code's CF, read and written
    void reads(Slot slot);
    void writes(Slot slot);
    // An instruction before the one being decoded.
    void prepare(Instruction in, std::initializer_list<Slot> read, std::initializer_list<Slot> written);

    uint32_t list(const std::vector<Slot>& slots);
    void branch_to(Instruction& in, const std::string& label);
    void flow(Flow kind) { note_.flow = kind; }
    void leave(Instruction& in);  // a branch to the last instruction
    const ptx::Targets* targets(const std::string& name) const;
    const ptx::Prototype* prototype(const std::string& name) const;
    uint32_t table(const std::vector<std::string>& labels);  // its number in Code::tables

    std::optional<Symbol> find_symbol(const std::string& name) const;
    std::optional<uint32_t> find_function(const std::string& name) const;
    // An actual parameter (or result) for a formal one.
    Place place_of(const ptx::Operand& operand, const ptx::Variable& formal, bool result);
    uint32_t frame_variable(uint32_t bytes, uint32_t alignment);

    void refuse(std::string why);
    // Its bytes behind `before` of its kind; refused if they become more than a kernel may have.
    uint32_t bytes_within(const ptx::Variable& variable, uint64_t before, uint64_t most);
    bool failed() const { return error_.has_value(); }
    Code& code() { return code_; }
    Program& program() { return program_; }
    Module::Linked& linked() { return linked_; }
    const ptx::Function& function() const { return function_; }

private:
    struct Register {
        uint32_t number = 0;
        int width = 0;
        int components = 1;
    };
    struct Names {
        std::unordered_map<std::string, Register> registers;
        std::unordered_map<std::string, Symbol> symbols;
        std::unordered_map<std::string, uint32_t> labels;  // numbers
        std::unordered_map<std::string, const ptx::Targets*> targets;
        std::unordered_map<std::string, const ptx::Prototype*> prototypes;
    };
    template <class T>
    const T* find(std::unordered_map<std::string, T> Names::* which, const std::string& name) const {
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
            if (auto at = ((*scope).*which).find(name); at != ((*scope).*which).end()) return &at->second;
        return nullptr;
    }

    void declare_parameters();
    void declare(const ptx::Variable& variable);
    void declare_registers(const ptx::Variable& variable);
    Place formal(const ptx::Variable& variable);
    Symbol shared_symbol(const ptx::Variable& variable);
    void walk(const ptx::Scope& scope);
    void enter(const ptx::Scope& scope);
    void statement(const ptx::Statement& statement);
    void instruction(const ptx::Instruction& source);
    void append(const Instruction& in);
    void add_last();
    void finish();
    bool leads_out(uint32_t place) const;
    void patch_targets();
    void patch_slots(const Allocation& allocation);
    void fill_facts(const Allocation& allocation);
    Slot register_slot(const ptx::Operand& operand, int* width);
    Slot special(const ptx::Operand& operand, int width);
    Slot special32(const ptx::Operand& operand);
    Slot symbol_address(const ptx::Operand& operand, int width);
    Slot resize(Slot slot, int from, int to);
    uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type);

    Module::Linked& linked_;
    Program& program_;
    const ptx::Function& function_;
    Code& code_;
    uint32_t part_ = 0;
    std::vector<Names> scopes_;
    std::vector<Virtual> virtuals_;
    std::vector<uint32_t> entry_, leaving_;  // registers alive at the beginning and at the end
    std::optional<Slot> carry_;
    std::vector<Note> notes_;  // of each instruction
    Note note_;                // of the one being decoded
    const ptx::Instruction* source_ = nullptr;
    int line_ = 0;
    std::vector<uint32_t> label_places_;  // by the label's number
    std::map<std::pair<uint64_t, int>, Slot> constants_;
    std::optional<LoadError> error_;
};

// The text of an opcode with its modifiers and types: "add.rn.f32".
std::string spelled(const ptx::Instruction& source);

}  // namespace smt::runtime::device::simulated
