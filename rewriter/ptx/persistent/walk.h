// Walks over syntax trees, constant or not.
#pragma once

#include <variant>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx::persistent {

// The operand and all inside of it.
template <typename AnyOperand, typename Visit>
void each_operand(AnyOperand& operand, const Visit& visit) {
    visit(operand);
    for (auto& element : operand.elements) each_operand(element, visit);
}

// The scope's statements and those of the scopes inside.
template <typename AnyScope, typename Visit>
void each_statement(AnyScope& scope, const Visit& visit) {
    for (auto& statement : scope.statements) {
        visit(statement);
        if (auto* inner = std::get_if<Scope>(&statement)) each_statement(*inner, visit);
    }
}

template <typename AnyScope, typename Visit>
void each_instruction(AnyScope& scope, const Visit& visit) {
    each_statement(scope, [&](auto& statement) {
        if (auto* instruction = std::get_if<Instruction>(&statement)) visit(*instruction);
    });
}

inline bool leaves(const Instruction& instruction) {
    return instruction.opcode == Opcode::kRet || instruction.opcode == Opcode::kExit;
}

// Another thread or program may answer it, or is answered by it.
inline bool is_ordered(const Instruction& instruction) {
    using enum Modifier;
    return instruction.first({kVolatile, kRelaxed, kAcquire, kRelease, kAcqRel, kMmio, kCv}).has_value();
}

// A load by which a block may see what another one writes meanwhile, so that it may wait for that one. Blocks
// of a cluster do not count.
inline bool loads_from_others(const Instruction& instruction) {
    using enum Modifier;
    if (instruction.opcode != Opcode::kLd) return false;
    if (instruction.first({kShared, kSharedCta, kSharedCluster, kCta})) return false;
    return instruction.first({kVolatile, kRelaxed, kAcquire}).has_value();
}

inline bool reads_index(const Operand& operand) {
    return operand.kind == Operand::Kind::kSpecial &&
           (operand.special == Special::kCtaid || operand.special == Special::kNctaid);
}

// The function that a call names; empty: it is an indirect call, or none.
inline std::string callee(const Instruction& instruction) {
    if (instruction.opcode != Opcode::kCall || instruction.operands.size() < 3) return "";
    const Operand& target = instruction.operands[1];
    return target.kind == Operand::Kind::kSymbol ? target.name : "";
}

}  // namespace smt::ptx::persistent
