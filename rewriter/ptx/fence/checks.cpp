#include "rewriter/ptx/fence/checks.h"

#include <fmt/format.h>

#include <utility>

#include "rewriter/ptx/fence/snippets.h"
#include "rewriter/ptx/layout.h"
#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::fence {

namespace {

constexpr std::string_view kRegisterPrefix = "%fence_";

// Of the accesses that one check is for. More than any code generator's, and less than a granule.
constexpr int64_t kMostSpread = 1 << 16;

bool is_shared(FenceSpace space) { return space == FenceSpace::kShared; }

// What follows may not be executed, or not with the same registers.
bool ends_block(const Instruction& instruction) {
    switch (instruction.opcode) {
        case Opcode::kBra:
        case Opcode::kBrx:
        case Opcode::kCall:
        case Opcode::kRet:
        case Opcode::kExit:
        case Opcode::kTrap:
        case Opcode::kBrkpt:
            return true;
        default:
            return false;
    }
}

std::string call_of(const std::string& first, bool kernel) {
    if (!kernel) return fmt::format("call smt_fence_end, ({0}, {1}, {1}, {1});\n", first, kNoFenceBlock);
    return fmt::format(R"(mov.u32 %fence_x, %ctaid.x;
mov.u32 %fence_y, %ctaid.y;
mov.u32 %fence_z, %ctaid.z;
call smt_fence_end, ({}, %fence_x, %fence_y, %fence_z);
)",
                       first);
}

constexpr const char* kBlock =
    ".reg .b32 %fence_x, %fence_y, %fence_z;\n.reg .pred %fence_not_well, %fence_holds;\n";

std::string with_guard(const Guard* guard) {
    if (!guard) return "";
    return guard->negated
               ? fmt::format(
                     "not.pred %fence_holds, {};\nand.pred %fence_not_well, %fence_not_well, %fence_holds;\n",
                     guard->name)
               : fmt::format("and.pred %fence_not_well, %fence_not_well, {};\n", guard->name);
}

}  // namespace

Checks::Checks(const Variables& variables, const Function& function, uint32_t number, int architecture)
    : module_(variables),
      function_(function),
      number_(number),
      architecture_(architecture),
      registers_(*function.body) {
    persistent::each_statement(*function.body, [this](const Statement& statement) {
        const auto* variable = std::get_if<Variable>(&statement);
        if (!variable) return;
        if (variable->name.starts_with(kRegisterPrefix))
            refuse(fmt::format("has {}, which is a name of the fence's", variable->name));
        if (variable->space == Space::kRegister) return;
        if (!own_.emplace(variable->name, *variable).second || module_.contains(variable->name))
            several_.insert(variable->name);
    });
    read(*function.body);
}

void Checks::refuse(const std::string& reason) {
    if (refusal_.empty()) refusal_ = reason;
}

void Checks::read(const Scope& scope) {
    for (const Statement& statement : scope.statements) {
        if (const auto* instruction = std::get_if<Instruction>(&statement)) {
            Plan plan;
            read(*instruction, plan);
            if (ends_block(*instruction)) open_.clear();
            std::erase_if(open_, [&](const auto& each) {
                const auto& [first, index] = each.second;
                const Check& check = first == instruction ? plan.checks[index] : plans_[first].checks[index];
                return may_change(*instruction, check.base);
            });
            if (!plan.checks.empty() || plan.waits || plan.error) plans_[instruction] = std::move(plan);
        } else if (const auto* inner = std::get_if<Scope>(&statement)) {
            open_.clear();
            read(*inner);
            open_.clear();
        } else if (std::holds_alternative<Label>(statement)) {
            open_.clear();
        }
    }
}

void Checks::read(const Instruction& instruction, Plan& plan) {
    Effect effect = effect_of(instruction);
    if (!effect.refusal.empty()) return refuse(effect.refusal);
    plan.waits = effect.waits;
    plan.error = effect.error;
    for (const Access& access : effect.accesses) add(instruction, access, plan);
}

void Checks::add(const Instruction& instruction, const Access& access, Plan& plan) {
    const Operand& address = *access.address;
    ++accesses_;
    if (address.kind != Operand::Kind::kAddress || address.elements.size() != 1 || !address.selector.empty())
        return refuse("has an address that is not a register or a variable");
    const Operand& base = address.elements[0];
    Check check;
    check.access = access;
    check.base = base.name;
    check.low = check.high = address.offset + base.offset;
    check.guard = instruction.guard ? &*instruction.guard : nullptr;
    if (base.kind == Operand::Kind::kSymbol) {
        const bool within = is_within(access, base.name, check.low);
        if (const std::string why = refuse_variable(access, base.name, within); !why.empty())
            return refuse(why);
        if (within) return;
        check.is_symbol = true;
    } else if (base.kind != Operand::Kind::kRegister) {
        return refuse("has an address that is a number");
    } else if (const auto type = registers_.type_of(base.name);
               !type || (bits(*type) != 64 && !(is_shared(access.space) && bits(*type) == 32))) {
        return refuse(fmt::format("has an address in {}, whose type is not known", base.name));
    }
    uses_shared_ |= access.space != FenceSpace::kGlobal;  // a generic address may be there
    uses_global_ |= !is_shared(access.space);
    if (joins(check, plan)) return;
    ++checks_;
    plan.checks.push_back(check);
    if (!check.guard && !access.unless_zero)
        open_[fmt::format("{} {}", static_cast<int>(access.space), check.base)] = {&instruction,
                                                                                   plan.checks.size() - 1};
}

bool Checks::joins(const Check& check, Plan& plan) {
    const auto found = open_.find(fmt::format("{} {}", static_cast<int>(check.access.space), check.base));
    if (found == open_.end() || check.access.unless_zero) return false;
    const auto& [first, index] = found->second;
    const auto place = plans_.find(first);
    Check& other = place == plans_.end() ? plan.checks[index] : place->second.checks[index];
    const int64_t low = std::min(other.low, check.low), high = std::max(other.high, check.high);
    const bool covers = other.access.use != FenceUse::kLoad || check.access.use == FenceUse::kLoad;
    if (high - low > kMostSpread || check.access.bytes > other.access.bytes || !covers ||
        (check.low - other.low) % other.access.bytes != 0)
        return false;
    // A guarded one may not follow: it joins what is checked anyway.
    if (check.guard && (low != other.low || high != other.high)) return false;
    other.low = low;
    other.high = high;
    return true;
}

const Variable* Checks::variable(const std::string& name) const {
    const auto own = own_.find(name), module = module_.find(name);
    return own != own_.end() ? &own->second : module != module_.end() ? &module->second : nullptr;
}

std::string Checks::refuse_variable(const Access& access, const std::string& name, bool within) const {
    if (several_.contains(name)) return "accesses one of several variables with one name";
    const Variable* const found = variable(name);
    if (found && found->space != (is_shared(access.space) ? Space::kShared : Space::kGlobal))
        return "accesses a variable of another state space";
    return within || is_shared(access.space) ? "" : "accesses a variable beyond its end";
}

bool Checks::is_within(const Access& access, const std::string& name, int64_t offset) const {
    const Variable* const found = variable(name);
    if (!found) return false;
    const uint64_t bytes = bytes_of(*found);
    return offset >= 0 && bytes >= access.bytes && static_cast<uint64_t>(offset) <= bytes - access.bytes &&
           offset % access.bytes == 0 && alignment_of(*found) % access.bytes == 0;
}

std::string Checks::text_of(const Check& check) const {
    const bool shared = is_shared(check.access.space);
    const bool narrow = shared && !check.is_symbol && bits(*registers_.type_of(check.base)) == 32;
    const char* const width = shared ? "32" : "64";
    std::string text = std::string("{\n") + kBlock + fmt::format(".reg .b{} %fence_at, %fence_in;\n", width);
    if (shared) text += ".reg .b64 %fence_wide;\n";
    if (shared && !narrow && !check.is_symbol)
        text += fmt::format("cvt.u32.u64 %fence_at, {};\n", check.base);
    else
        text += fmt::format("mov.u{} %fence_at, {};\n", width, check.base);
    if (check.low != 0) text += fmt::format("add.s{} %fence_at, %fence_at, {};\n", width, check.low);
    if (shared) {
        text += fmt::format("setp.ge.u32 %fence_not_well, %fence_at, {};\n", kShared);
    } else {
        text += fmt::format(
            "sub.s64 %fence_in, %fence_at, {};\nsetp.ge.u64 %fence_not_well, %fence_in, {};\n", kRun, kBytes);
    }
    if (check.high != check.low)
        text += fmt::format(
            "add.s{0} %fence_in, {1}, {2};\nsetp.ge.or.u{0} %fence_not_well, %fence_in, {3}, "
            "%fence_not_well;\n",
            width, shared ? "%fence_at" : "%fence_in", check.high - check.low, shared ? kShared : kBytes);
    if (check.access.bytes > 1)
        text += fmt::format(
            "and.b{0} %fence_in, %fence_at, {1};\nsetp.ne.or.s{0} %fence_not_well, %fence_in, 0, "
            "%fence_not_well;\n",
            width, check.access.bytes - 1);
    text += with_guard(check.guard);
    if (check.access.unless_zero) {
        const std::string& reads = check.access.unless_zero->name;
        if (registers_.type_of(reads) == Type::kPred)  // of ignore-src
            text += fmt::format(
                "not.pred %fence_holds, {};\nand.pred %fence_not_well, %fence_not_well, %fence_holds;\n",
                reads);
        else
            text += fmt::format("setp.ne.and.s32 %fence_not_well, {}, 0, %fence_not_well;\n", reads);
    }
    text += "@!%fence_not_well bra goes_on;\n";
    if (shared)
        text += "cvt.u64.u32 %fence_wide, %fence_at;\n";
    else
        text += look_further({check.access.space == FenceSpace::kGeneric, check.access.use == FenceUse::kLoad,
                              check.access.bytes, check.high - check.low});
    text += "wrong:\n";
    const uint32_t word = fence_word({check.access.bytes, check.access.space, check.access.use, number_});
    text += call_of(fmt::format("0, {}, {}", shared ? "%fence_wide" : "%fence_at", word), function_.kernel);
    return text + "goes_on:\n}\n";
}

Statement Checks::parsed(const Check& check) const {
    std::vector<std::string> declared{check.base, kRun, kBytes, kShared};
    if (check.guard) declared.push_back(check.guard->name);
    if (check.access.unless_zero) declared.push_back(check.access.unless_zero->name);
    std::vector<Statement> all = statements(text_of(check), declared);
    if (!check.is_symbol) return std::move(all.front());
    // In the snippet the variable's name was a register's.
    auto& scope = std::get<Scope>(all.front());
    persistent::each_instruction(scope, [&](Instruction& instruction) {
        for (Operand& operand : instruction.operands)
            if (operand.name == check.base) operand.kind = Operand::Kind::kSymbol;
    });
    return std::move(all.front());
}

Scope Checks::rewritten(const Scope& scope) const {
    Scope result;
    for (const Statement& statement : scope.statements) {
        if (const auto* inner = std::get_if<Scope>(&statement)) {
            result.statements.emplace_back(rewritten(*inner));
            continue;
        }
        const auto* instruction = std::get_if<Instruction>(&statement);
        const auto plan = instruction ? plans_.find(instruction) : plans_.end();
        if (plan == plans_.end()) {
            result.statements.push_back(statement);
            continue;
        }
        for (const Check& check : plan->second.checks) result.statements.push_back(parsed(check));
        std::string text;
        std::vector<std::string> declared;
        if (const int error = plan->second.error) {
            text = std::string("{\n") + kBlock;
            if (instruction->guard) {
                declared.push_back(instruction->guard->name);
                text += fmt::format("@{}{} bra goes_on;\n", instruction->guard->negated ? "" : "!",
                                    instruction->guard->name);
            }
            const uint32_t word = fence_word({0, FenceSpace::kGlobal, FenceUse::kNone, number_});
            text += call_of(fmt::format("{}, 0, {}", error, word), function_.kernel);
            text += "goes_on:\n}\n";
        } else {
            result.statements.push_back(statement);
        }
        if (plan->second.waits) text += leave_if_over();
        for (Statement& each : statements(text, declared)) result.statements.push_back(std::move(each));
    }
    return result;
}

Scope Checks::body() const {
    Scope result = rewritten(*function_.body);
    std::vector<Statement> begin = beginning({function_.kernel, uses_global_, uses_shared_, architecture_});
    result.statements.insert(result.statements.begin(), std::make_move_iterator(begin.begin()),
                             std::make_move_iterator(begin.end()));
    return result;
}

}  // namespace smt::ptx::fence
