#include "rewriter/ptx/persistent/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

constexpr const char* kDone = "$smt_done";
constexpr const char* kDepart = "$smt_depart";

// A name may begin with %, and have none further on.
std::string prefixed(std::string_view prefix, const std::string& name) {
    const size_t mark = name.starts_with('%') ? 1 : 0;
    return name.substr(0, mark) + std::string(prefix) + name.substr(mark);
}

Label label(const std::string& name) {
    Label made;
    made.name = name;
    return made;
}

Instruction branch(const std::string& target, std::optional<Guard> guard) {
    Instruction made;
    made.guard = std::move(guard);
    made.opcode = Opcode::kBra;
    Operand operand;
    operand.kind = Operand::Kind::kLabel;
    operand.name = target;
    made.operands.push_back(std::move(operand));
    return made;
}

// A move of 16 bits takes the low half of a special register, and nothing of a register of 32.
void narrow(Instruction& instruction) {
    if (instruction.opcode != Opcode::kMov || instruction.types.empty() || bits(instruction.types[0]) != 16)
        return;
    instruction.opcode = Opcode::kCvt;
    instruction.types = {Type::kU16, Type::kU32};
}

void replace_index(Instruction& instruction) {
    bool found = false;
    for (Operand& whole : instruction.operands) {
        each_operand(whole, [&](Operand& operand) {
            if (!reads_index(operand)) return;
            const char* registers = operand.special == Special::kCtaid ? kBlock : kGrid;
            const int component = operand.component;
            operand = {};
            operand.kind = Operand::Kind::kRegister;
            operand.name = fmt::format("{}{}", registers, component);
            found = true;
        });
    }
    if (found) narrow(instruction);
}

void call_copies(Instruction& instruction, const std::set<std::string>& copied, const ModuleFacts& facts) {
    const std::string name = callee(instruction);
    if (name.empty() || !copied.contains(facts.resolve(name))) return;
    instruction.operands[1].name = copy_name(facts.resolve(name));
}

// How a thread ends, `number`th copy: what the form has behind its place, with labels of its own. In a form
// for bodies with checks it first says that the thread has not left at one.
std::vector<Statement> departure(const Form& form, size_t number) {
    const std::vector<Statement>& all = form.entry.body->statements;
    Scope tail;
    if (!form.behind.empty()) tail.statements.push_back(form.behind.front());
    for (size_t i = form.place + 1; i < all.size(); ++i) {
        tail.statements.push_back(all[i]);
        auto* instruction = std::get_if<Instruction>(&all[i]);
        if (instruction && instruction->opcode == Opcode::kExit) break;
    }
    std::set<std::string> labels;
    for (const Statement& statement : tail.statements)
        if (auto* own = std::get_if<Label>(&statement)) labels.insert(own->name);
    auto rename = [&](std::string& name) {
        if (labels.contains(name)) name += fmt::format("_{}", number);
    };
    each_statement(tail, [&](Statement& statement) {
        if (auto* own = std::get_if<Label>(&statement)) rename(own->name);
        if (auto* instruction = std::get_if<Instruction>(&statement))
            for (Operand& operand : instruction->operands)
                if (operand.kind == Operand::Kind::kLabel) rename(operand.name);
    });
    return std::move(tail.statements);
}

bool is_plain_return(const Statement& statement) {
    auto* instruction = std::get_if<Instruction>(&statement);
    return instruction && leaves(*instruction) && !instruction->guard;
}

// Turns the ways out of a body into ends of threads.
class Departures {
public:
    Departures(Scope& body, const Form& form) : body_(body), form_(form) {}

    void make() {
        find_returns();
        change(body_);
        if (!ends(body_.statements)) append(body_.statements);
        for (const std::string& name : wanted_) {
            body_.statements.emplace_back(label(name));
            append(body_.statements);
        }
    }

private:
    // Labels of the body itself, and of no scope inside, behind which there is nothing but a return.
    void find_returns() {
        std::vector<std::string> open;
        for (const Statement& statement : body_.statements) {
            if (auto* own = std::get_if<Label>(&statement)) {
                open.push_back(own->name);
            } else if (!std::holds_alternative<Location>(statement) &&
                       !std::holds_alternative<Pragma>(statement)) {
                if (is_plain_return(statement)) returns_.insert(open.begin(), open.end());
                open.clear();
            }
        }
        for (const Statement& statement : body_.statements)
            if (auto* inner = std::get_if<Scope>(&statement))
                each_statement(*inner, [&](const Statement& nested) {
                    if (auto* own = std::get_if<Label>(&nested)) returns_.erase(own->name);
                });
    }

    void change(Scope& scope) {
        std::vector<Statement> changed;
        for (Statement& statement : scope.statements) {
            auto* instruction = std::get_if<Instruction>(&statement);
            if (auto* inner = std::get_if<Scope>(&statement)) change(*inner);
            if (is_plain_return(statement)) {
                append(changed);
                continue;
            }
            if (instruction && leaves(*instruction)) {
                statement = branch(depart(), instruction->guard);
            } else if (instruction && instruction->opcode == Opcode::kBra &&
                       returns_.contains(instruction->operands[0].name)) {
                statement = branch(depart(), instruction->guard);
            }
            changed.push_back(std::move(statement));
        }
        scope.statements = std::move(changed);
    }

    std::string depart() { return wanted_.emplace_back(fmt::format("{}{}", kDepart, wanted_.size())); }

    void append(std::vector<Statement>& statements) {
        std::vector<Statement> end = departure(form_, count_++);
        std::move(end.begin(), end.end(), std::back_inserter(statements));
    }

    static bool ends(const std::vector<Statement>& statements) {
        auto* last = statements.empty() ? nullptr : std::get_if<Instruction>(&statements.back());
        return last && !last->guard &&
               (last->opcode == Opcode::kBra || last->opcode == Opcode::kTrap || leaves(*last));
    }

    Scope& body_;
    const Form& form_;
    std::set<std::string> returns_;
    std::vector<std::string> wanted_;  // labels
    size_t count_ = 0;
};

// A way out leads to the body's end.
void return_to_loop(Scope& body) {
    if (!body.statements.empty() && is_plain_return(body.statements.back())) body.statements.pop_back();
    each_instruction(body, [](Instruction& instruction) {
        if (leaves(instruction)) instruction = branch(kDone, instruction.guard);
    });
}

Instruction await_copies() {
    Instruction made;
    made.opcode = Opcode::kCp;
    made.modifiers = {Modifier::kAsync, Modifier::kWaitAll};
    return made;
}

// ld.shared.u32 %smt_index4, [current+16];
Instruction load_index(int which) {
    Instruction made;
    made.opcode = Opcode::kLd;
    made.modifiers = {Modifier::kShared};
    made.types = {Type::kU32};
    Operand to, address, base;
    to.kind = Operand::Kind::kRegister;
    to.name = fmt::format("%smt_index{}", which);
    base.kind = Operand::Kind::kSymbol;
    base.name = kIndexVariable;
    address.kind = Operand::Kind::kAddress;
    address.offset = 4 * which;
    address.elements = {std::move(base)};
    made.operands = {std::move(to), std::move(address)};
    return made;
}

void read_shared_index(Scope& scope) {
    std::vector<Statement> changed;
    for (Statement& statement : scope.statements) {
        if (auto* inner = std::get_if<Scope>(&statement)) read_shared_index(*inner);
        if (auto* instruction = std::get_if<Instruction>(&statement)) {
            bool found = false;
            for (Operand& whole : instruction->operands) {
                each_operand(whole, [&](Operand& operand) {
                    if (!reads_index(operand)) return;
                    const int which = operand.component + (operand.special == Special::kNctaid ? 3 : 0);
                    Instruction load = load_index(which);
                    operand = load.operands[0];
                    changed.emplace_back(std::move(load));
                    found = true;
                });
            }
            if (found) narrow(*instruction);
        }
        changed.push_back(std::move(statement));
    }
    scope.statements = std::move(changed);
}

}  // namespace

std::string managed_name(const std::string& kernel, const Verdict& verdict) {
    return prefixed(prefix_of(verdict.reuse), kernel);
}

std::string copy_name(const std::string& function) { return prefixed(kPrefix, function); }

Function compose(const Function& entry, const Verdict& verdict, const ModuleFacts& facts) {
    const Form& form = forms()[verdict.form];
    Scope body = *entry.body;
    each_instruction(body, [&](Instruction& instruction) {
        replace_index(instruction);
        call_copies(instruction, verdict.copied, facts);
    });
    if (verdict.reuse != Reuse::kNever)
        return_to_loop(body);
    else
        Departures(body, form).make();

    Function managed = form.entry;
    managed.name = managed_name(entry.name, verdict);
    managed.linkage = entry.linkage == Linkage::kWeak ? Linkage::kWeak : Linkage::kVisible;
    managed.attributes = entry.attributes;
    managed.directives = entry.directives;
    managed.parameters = entry.parameters;
    managed.parameters.push_back(form.entry.parameters.front());
    Scope& around = std::get<Scope>(managed.body->statements[form.place]);
    around.statements.emplace_back(std::move(body));
    if (verdict.reuse != Reuse::kNever) {
        around.statements.emplace_back(label(kDone));
        if (verdict.copies) around.statements.emplace_back(await_copies());
    }
    around.statements.insert(around.statements.end(), form.behind.begin(), form.behind.end());
    return managed;
}

Function copy_function(const Function& function, const std::set<std::string>& copied,
                       const ModuleFacts& facts) {
    Function copy = function;
    copy.name = copy_name(function.name);
    copy.linkage = Linkage::kInternal;
    read_shared_index(*copy.body);
    each_instruction(*copy.body, [&](Instruction& instruction) { call_copies(instruction, copied, facts); });
    Variable registers;
    registers.space = Space::kRegister;
    registers.type = Type::kB32;
    registers.name = "%smt_index";
    registers.count = 6;
    copy.body->statements.insert(copy.body->statements.begin(), std::move(registers));
    return copy;
}

}  // namespace smt::ptx::persistent
