#include "rewriter/ptx/persistent/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewriter/ptx/fence/fence.h"
#include "rewriter/ptx/persistent/rules.h"
#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

bool in_shared(const Instruction& instruction) {
    return instruction.has(Modifier::kShared) || instruction.has(Modifier::kSharedCta) ||
           instruction.has(Modifier::kSharedCluster);
}

void look_at(const Instruction& instruction, const ModuleFacts& module, Facts& facts) {
    const std::string target = callee(instruction);
    if (instruction.opcode == Opcode::kCall) {
        if (target.empty())
            facts.indirect = true;
        else
            facts.calls.insert(module.resolve(target));
    }
    facts.width = std::max(facts.width, width_of(instruction));
    facts.shares |= width_of(instruction) != Width::kThread || in_shared(instruction) ||
                    instruction.opcode == Opcode::kActivemask || instruction.opcode == Opcode::kMbarrier;
    facts.matrices |= instruction.opcode == Opcode::kWgmma || instruction.opcode == Opcode::kTcgen05 ||
                      (instruction.opcode == Opcode::kCp && instruction.has(Modifier::kTensor));
    facts.system |= (instruction.opcode == Opcode::kAtom || instruction.opcode == Opcode::kRed) &&
                    instruction.has(Modifier::kSys);
    facts.waits |= loads_from_others(instruction) && !fence::is_look(instruction) &&
                   !fence::is_of_fence(instruction, *facts.function);
    for (const Operand& whole : instruction.operands) {
        each_operand(whole, [&](const Operand& operand) {
            facts.index |= reads_index(operand);
            if (operand.kind == Operand::Kind::kSpecial) {
                facts.sm |= operand.special == Special::kSmid;
                facts.sms |= operand.special == Special::kNsmid;
            }
            if (operand.kind == Operand::Kind::kSymbol && operand.name != target)
                facts.names.insert(module.resolve(operand.name));
        });
    }
    judge_instruction(instruction, facts);
}

void add_symbols(const Initializer& initializer, const ModuleFacts& module, std::set<std::string>& names) {
    if (initializer.kind == Initializer::Kind::kSymbol) names.insert(module.resolve(initializer.name));
    for (const Initializer& element : initializer.elements) add_symbols(element, module, names);
}

uint64_t size_of(const Variable& variable) {
    uint64_t bytes =
        static_cast<uint64_t>(std::max(bits(variable.type), 8)) / 8 * static_cast<uint64_t>(variable.vector);
    for (const uint64_t dimension : variable.dimensions) bytes *= dimension;
    return bytes;
}

}  // namespace

Width width_of(const Instruction& instruction) {
    switch (instruction.opcode) {
        case Opcode::kVote:
        case Opcode::kShfl:
        case Opcode::kMatch:
        case Opcode::kRedux:
        case Opcode::kElect:
        case Opcode::kWmma:
        case Opcode::kMma:
        case Opcode::kLdmatrix:
        case Opcode::kStmatrix:
        case Opcode::kMovmatrix:
            return Width::kWarp;
        case Opcode::kBar:
            return instruction.has(Modifier::kWarp) ? Width::kWarp : Width::kBlock;
        case Opcode::kBarrier:
        case Opcode::kWgmma:
            return Width::kBlock;
        default:
            return instruction.has(Modifier::kSync) ? Width::kBlock : Width::kThread;
    }
}

ModuleFacts::ModuleFacts(const Module& module) {
    for (const Declaration& declaration : module.declarations) {
        if (auto* alias = std::get_if<Alias>(&declaration)) aliases_[alias->name] = alias->target;
        if (auto* alias = std::get_if<Alias>(&declaration)) names_.insert(alias->name);
        if (auto* variable = std::get_if<Variable>(&declaration)) names_.insert(variable->name);
        if (auto* function = std::get_if<Function>(&declaration)) names_.insert(function->name);
    }
    std::set<std::string> named;
    for (const Declaration& declaration : module.declarations) {
        if (auto* variable = std::get_if<Variable>(&declaration)) {
            if (variable->space == Space::kShared) shared_[variable->name] = variable;
            dynamic_ |= variable->space == Space::kShared && variable->linkage == Linkage::kExtern;
            if (variable->initializer) add_symbols(*variable->initializer, *this, named);
        }
        auto* function = std::get_if<Function>(&declaration);
        if (!function || !function->body) continue;
        Facts& facts = functions_[function->name];
        facts.function = function;
        each_statement(*function->body, [&](const Statement& statement) {
            if (auto* instruction = std::get_if<Instruction>(&statement)) look_at(*instruction, *this, facts);
            auto* variable = std::get_if<Variable>(&statement);
            if (!variable) return;
            facts.shares |= variable->space == Space::kShared;
            if (variable->initializer) add_symbols(*variable->initializer, *this, named);
            if (facts.refusal.empty() && variable->space == Space::kGlobal)
                facts.refusal =
                    fmt::format("has a variable of its own in device memory ({})", variable->name);
        });
        named.insert(facts.names.begin(), facts.names.end());
    }
    for (auto& [name, facts] : functions_) {
        if (named.contains(name) && !facts.function->kernel) addressed_.insert(name);
        for (const std::string& symbol : facts.names) facts.shares |= shared_.contains(symbol);
    }
}

std::string ModuleFacts::resolve(const std::string& name) const {
    std::string target = name;
    for (size_t i = 0; i <= aliases_.size(); ++i) {  // no text makes it endless
        auto found = aliases_.find(target);
        if (found == aliases_.end()) break;
        target = found->second;
    }
    return target;
}

const Facts* ModuleFacts::find(const std::string& function) const {
    auto found = functions_.find(function);
    return found == functions_.end() ? nullptr : &found->second;
}

// Names, also of what is only declared.
std::set<std::string> ModuleFacts::called_by(const std::string& function, bool indirectly) const {
    std::set<std::string> found;
    std::vector<std::string> open{function};
    while (!open.empty()) {
        const std::string name = std::move(open.back());
        open.pop_back();
        if (!found.insert(name).second) continue;
        const Facts* facts = find(name);
        if (!facts) continue;
        open.insert(open.end(), facts->calls.begin(), facts->calls.end());
        if (facts->indirect && indirectly) open.insert(open.end(), addressed_.begin(), addressed_.end());
    }
    return found;
}

std::vector<const Facts*> ModuleFacts::reach(const std::string& function) const {
    std::vector<const Facts*> reached;
    for (const std::string& name : called_by(function, true)) {
        const Facts* facts = find(name);
        if (facts) reached.insert(name == function ? reached.begin() : reached.end(), facts);
    }
    return reached;
}

std::set<std::string> ModuleFacts::unseen(const std::string& function) const {
    std::set<std::string> names = called_by(function, true);
    std::erase_if(names, [&](const std::string& name) { return find(name) != nullptr; });
    return names;
}

bool ModuleFacts::reads_index(const std::string& function) const {
    const std::set<std::string> names = called_by(function, false);
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        const Facts* facts = find(name);
        return facts && facts->index;
    });
}

Width ModuleFacts::width_of(const std::string& function) const {
    Width width = Width::kThread;
    for (const Facts* facts : reach(function)) width = std::max(width, facts->width);
    return width;
}

uint64_t ModuleFacts::dynamic_step(const std::vector<const Facts*>& functions) const {
    constexpr uint64_t kStep = 128, kMatrixStep = 1024;
    if (!dynamic_) return 0;
    const bool matrices =
        std::any_of(functions.begin(), functions.end(), [](const Facts* facts) { return facts->matrices; });
    return matrices ? kMatrixStep : kStep;
}

uint64_t ModuleFacts::dynamic_step() const {
    std::vector<const Facts*> all;
    for (const auto& [name, facts] : functions_) all.push_back(&facts);
    return dynamic_step(all);
}

uint64_t ModuleFacts::shared_bytes(const std::vector<const Facts*>& functions) const {
    constexpr uint64_t kPadding = 16;
    std::map<const Variable*, uint64_t> sizes;
    for (const Facts* facts : functions) {
        for (const std::string& name : facts->names)
            if (auto found = shared_.find(name); found != shared_.end())
                sizes[found->second] = size_of(*found->second);
        each_statement(*facts->function->body, [&](const Statement& statement) {
            auto* variable = std::get_if<Variable>(&statement);
            if (variable && variable->space == Space::kShared) sizes[variable] = size_of(*variable);
        });
    }
    uint64_t bytes = 0;
    for (const auto& [variable, size] : sizes) bytes += (size + kPadding - 1) / kPadding * kPadding;
    return bytes;
}

}  // namespace smt::ptx::persistent
