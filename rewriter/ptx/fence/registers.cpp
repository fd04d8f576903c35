#include "rewriter/ptx/fence/registers.h"

#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::fence {

Registers::Registers(const Scope& body) {
    persistent::each_statement(body, [this](const Statement& statement) {
        const auto* variable = std::get_if<Variable>(&statement);
        if (!variable || variable->space != Space::kRegister) return;
        note(variable->count ? numbered_ : single_, variable->name, variable->type);
    });
}

void Registers::note(std::map<std::string, std::optional<Type>>& types, const std::string& name, Type type) {
    const auto [entry, fresh] = types.emplace(name, type);
    if (!fresh && entry->second != type) entry->second.reset();
}

std::optional<Type> Registers::type_of(const std::string& name) const {
    if (const auto found = single_.find(name); found != single_.end()) return found->second;
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    const auto found = numbered_.find(name.substr(0, digits));
    return found == numbered_.end() || digits == name.size() ? std::nullopt : found->second;
}

bool may_change(const Instruction& instruction, const std::string& name) {
    bool changes = false;
    for (const Operand& operand : instruction.operands) {
        if (operand.kind == Operand::Kind::kAddress) continue;
        persistent::each_operand(operand, [&](const Operand& each) { changes |= each.name == name; });
        break;  // results come first
    }
    return changes;
}

}  // namespace smt::ptx::fence
