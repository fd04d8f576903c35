#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/device/simulated/exec/decoder.h"
#include "runtime/device/simulated/exec/initializer.h"
#include "runtime/device/simulated/exec/linked.h"
#include "runtime/device/simulated/exec/memory.h"
#include "runtime/device/simulated/exec/spaces.h"

namespace smt::runtime::device::simulated {
namespace {

const std::map<std::string, Builtin, std::less<>> kBuiltins = {{"vprintf", Builtin::kPrintf},
                                                               {"malloc", Builtin::kMalloc},
                                                               {"free", Builtin::kFree},
                                                               {"__assertfail", Builtin::kAssert}};

bool seen_outside(ptx::Linkage linkage) { return linkage != ptx::Linkage::kInternal; }

Dim3 three(const ptx::Directive& directive) {
    const auto at = [&](size_t i) {
        return i < directive.values.size() ? static_cast<uint32_t>(directive.values[i]) : 1;
    };
    return {at(0), at(1), at(2)};
}

// Bytes of local memory that a chain of calls needs; a function that calls itself counts once.
uint32_t deepest(const Program& program, const Code& code, std::set<const Code*>& above) {
    if (!above.insert(&code).second) return 0;
    uint32_t most = 0;
    for (const Call& call : code.calls)
        if (!call.indirect && program.functions[call.function] != nullptr)
            most = std::max(most, deepest(program, *program.functions[call.function], above));
    above.erase(&code);
    return code.local_bytes + most;
}

// Registers of a function and the callee that needs the most.
uint32_t most_words(const Program& program) {
    uint32_t most = 0;
    uint32_t callees = 0;
    for (const auto& code : program.functions) {
        if (code == nullptr) continue;
        (code->kernel ? most : callees) = std::max(code->kernel ? most : callees, code->live_words);
    }
    return most + callees;
}

void describe(const ptx::Function& function, const Program& program, DecodedKernel& kernel) {
    uint32_t offset = 0;
    for (const ptx::Variable& parameter : function.parameters) {
        const auto bytes = static_cast<uint32_t>(bytes_of(parameter));
        offset = round_up(offset, alignment_of(parameter));
        kernel.parameters.push_back({offset, bytes});
        offset += bytes;
    }
    kernel.parameter_bytes = offset;
    kernel.static_shared = program.shared_bytes;
    kernel.shared_alignment = program.shared_alignment;
    std::set<const Code*> above;
    kernel.local_bytes = deepest(program, *kernel.code, above);
    for (const auto& code : program.functions)
        if (code != nullptr) kernel.barriers = std::max(kernel.barriers, code->barriers);
    if (const auto* most = function.find(ptx::Directive::Kind::kMaxntid))
        kernel.max_threads = static_cast<uint32_t>(std::min<uint64_t>(1024, three(*most).count()));
    if (const auto* required = function.find(ptx::Directive::Kind::kReqntid)) {
        kernel.required_block = three(*required);
        kernel.max_threads = static_cast<uint32_t>(std::min<uint64_t>(1024, kernel.required_block.count()));
    }
    if (const auto* least = function.find(ptx::Directive::Kind::kMinnctapersm);
        least && !least->values.empty())
        kernel.min_blocks = static_cast<uint32_t>(least->values[0]);
    // Two words more than are alive: an assembler needs some for addresses and constants.
    kernel.registers = std::clamp(round_up(most_words(program) + 2, 8), 16u, 255u);
    if (const auto* most = function.find(ptx::Directive::Kind::kMaxnreg); most && !most->values.empty())
        kernel.registers = std::min(kernel.registers, static_cast<uint32_t>(most->values[0]));
}

}  // namespace

Module::Linked::~Linked() {
    for (const Variable& variable : variables)
        if (variable.address != 0) memory.give_back(variable.address);
}

std::optional<LoadError> Module::Linked::add(uint32_t part, const ptx::Function& function) {
    Names& names = seen_outside(function.linkage) ? shared : local[part];
    auto [at, fresh] = names.functions.emplace(function.name, static_cast<uint32_t>(functions.size()));
    if (fresh) functions.push_back({nullptr, &function, part, Builtin::kNone, false});
    Function& entry = functions[at->second];
    if (!function.body) {
        if (auto known = kBuiltins.find(function.name); known != kBuiltins.end())
            entry.builtin = known->second;
        return std::nullopt;
    }
    if (entry.definition != nullptr) {
        if (function.linkage == ptx::Linkage::kWeak) return std::nullopt;
        if (entry.definition->linkage != ptx::Linkage::kWeak)
            return LoadError{function.line, fmt::format("{} is defined twice", function.name)};
    }
    entry.definition = &function;
    entry.part = part;
    entry.builtin = Builtin::kNone;
    return std::nullopt;
}

std::optional<LoadError> Module::Linked::add(uint32_t part, const ptx::Variable& variable) {
    Names& names = seen_outside(variable.linkage) ? shared : local[part];
    auto [at, fresh] = names.variables.emplace(variable.name, static_cast<uint32_t>(variables.size()));
    if (fresh) {
        variables.push_back({&variable, part, 0, bytes_of(variable)});
        return std::nullopt;
    }
    Variable& entry = variables[at->second];
    if (variable.linkage == ptx::Linkage::kExtern) return std::nullopt;
    const bool replaces =
        entry.variable->linkage == ptx::Linkage::kExtern ||
        (entry.variable->linkage != ptx::Linkage::kVisible && variable.linkage == ptx::Linkage::kVisible);
    const bool weaker = variable.linkage == ptx::Linkage::kWeak || variable.linkage == ptx::Linkage::kCommon;
    if (!replaces && !weaker)
        return LoadError{variable.line, fmt::format("{} is defined twice", variable.name)};
    if (replaces) entry = {&variable, part, 0, bytes_of(variable)};
    return std::nullopt;
}

std::optional<LoadError> Module::Linked::add_names(uint32_t part) {
    for (const ptx::Declaration& declaration : parts[part].declarations) {
        std::optional<LoadError> error;
        if (const auto* function = std::get_if<ptx::Function>(&declaration)) error = add(part, *function);
        if (const auto* variable = std::get_if<ptx::Variable>(&declaration)) error = add(part, *variable);
        if (error) return error;
    }
    // Aliases come after what they name.
    for (const ptx::Declaration& declaration : parts[part].declarations) {
        const auto* alias = std::get_if<ptx::Alias>(&declaration);
        if (alias == nullptr) continue;
        auto target = find_function(part, alias->target);
        if (!target)
            return LoadError{alias->line, fmt::format("{} is an alias of {}, which is not defined",
                                                      alias->name, alias->target)};
        shared.functions[alias->name] = *target;
    }
    return std::nullopt;
}

std::optional<uint32_t> Module::Linked::find_function(uint32_t part, const std::string& name) const {
    for (const Names* names : {&local[part], &shared})
        if (auto at = names->functions.find(name); at != names->functions.end()) return at->second;
    return std::nullopt;
}

const Module::Linked::Variable* Module::Linked::find_variable(uint32_t part, const std::string& name) const {
    for (const Names* names : {&local[part], &shared})
        if (auto at = names->variables.find(name); at != names->variables.end())
            return &variables[at->second];
    return nullptr;
}

std::optional<LoadError> Module::Linked::link(const ManagedMemory& managed, const VariableMemory& others) {
    local.resize(parts.size());
    for (uint32_t part = 0; part < parts.size(); ++part)
        if (auto error = add_names(part)) return error;
    if (auto error = place_managed(managed)) return error;
    place_others(others);
    for (Variable& variable : variables)
        if (auto error = place(variable)) return error;
    for (const Variable& variable : variables)
        if (variable.address != 0 && !variable.filled)
            if (auto error = initialise(variable)) return error;
    note_addresses();
    return std::nullopt;
}

std::optional<LoadError> Module::Linked::initialise(const Variable& variable) {
    if (!variable.variable->initializer) return std::nullopt;
    const auto address = [&](const std::string& name) -> std::optional<uint64_t> {
        if (const Variable* other = find_variable(variable.part, name);
            other != nullptr && other->address != 0)
            return other->address;
        if (auto number = find_function(variable.part, name)) {
            functions[*number].address_taken = true;
            return function_address(*number);
        }
        return std::nullopt;
    };
    return write_initializer(*variable.variable, reinterpret_cast<std::byte*>(variable.address),
                             variable.bytes, address);
}

namespace {

// Calls `taken` for each name in the scope whose address is used as a value.
template <class F>
void each_symbol(const ptx::Scope& scope, F taken) {
    for (const ptx::Statement& statement : scope.statements) {
        if (const auto* inner = std::get_if<ptx::Scope>(&statement)) each_symbol(*inner, taken);
        const auto* instruction = std::get_if<ptx::Instruction>(&statement);
        if (instruction == nullptr) continue;
        for (size_t i = 0; i < instruction->operands.size(); ++i) {
            if (instruction->opcode == ptx::Opcode::kCall && i == 1) continue;
            const ptx::Operand& operand = instruction->operands[i];
            if (operand.kind == ptx::Operand::Kind::kSymbol) taken(operand.name);
            for (const ptx::Operand& element : operand.elements)
                if (element.kind == ptx::Operand::Kind::kSymbol) taken(element.name);
        }
    }
}

}  // namespace

void Module::Linked::note_addresses() {
    for (uint32_t i = 0; i < functions.size(); ++i) {
        if (functions[i].definition == nullptr) continue;
        each_symbol(*functions[i].definition->body, [&](const std::string& name) {
            if (auto number = find_function(functions[i].part, name)) functions[*number].address_taken = true;
        });
    }
}

// Decodes a function and all that it calls directly. A function that cannot be decoded and is reached by
// its address only is refused at such a call.
bool Module::Linked::decode_reachable(Program& program, uint32_t from, std::optional<LoadError>& error) {
    std::vector<uint32_t> work{from};
    while (!work.empty()) {
        const uint32_t number = work.back();
        work.pop_back();
        if (program.functions[number] != nullptr) continue;
        const Function& function = functions[number];
        auto code = std::make_unique<Code>();
        code->program = &program;
        code->name = function.declaration->name;
        code->builtin = function.builtin;
        if (function.builtin == Builtin::kNone) {
            if (function.definition == nullptr) {
                error = LoadError{function.declaration->line,
                                  fmt::format("{} is called and defined nowhere", code->name)};
                return false;
            }
            Decoder decoder(*this, program, *function.definition, *code);
            decoder.set_part(function.part);
            error = decoder.run();
            if (error) return false;
            for (const Call& call : code->calls)
                if (!call.indirect) work.push_back(call.function);
        }
        program.functions[number] = std::move(code);
    }
    return true;
}

const Module::Linked::Loaded& Module::Linked::load(const std::string& name, uint32_t number) {
    auto [at, fresh] = kernels.try_emplace(name);
    Loaded& loaded = at->second;
    if (!fresh) return loaded;
    auto program = std::make_unique<Program>();
    program->functions.resize(functions.size());
    program->refusals.resize(functions.size());
    for (const Variable& variable : variables)
        if (variable.variable->space == ptx::Space::kConstant)
            program->constants.emplace_back(variable.address, variable.address + variable.bytes);
    if (!decode_reachable(*program, number, loaded.error)) {
        loaded.error->message = fmt::format("{}: {}", name, loaded.error->message);
        return loaded;
    }
    if (program->calls_unknown) {
        for (uint32_t i = 0; i < functions.size(); ++i) {
            std::optional<LoadError> error;
            if (functions[i].address_taken && !decode_reachable(*program, i, error))
                program->refusals[i] = fmt::format("line {}: {}", error->line, error->message);
        }
    }
    program->shared_bytes = program->dynamic_shared
                                ? round_up(program->shared_bytes, std::max(16u, program->shared_alignment))
                                : program->shared_bytes;
    loaded.kernel = std::make_unique<DecodedKernel>();
    loaded.kernel->name = name;
    loaded.kernel->code = program->functions[number].get();
    describe(*functions[number].definition, *program, *loaded.kernel);
    loaded.program = std::move(program);
    return loaded;
}

// ---- Module

Module::Module(std::unique_ptr<Linked> linked) : linked_(std::move(linked)) {}
Module::~Module() = default;

std::variant<std::unique_ptr<Module>, LoadError> Module::load(std::vector<ptx::Module> parts, Memory& memory,
                                                              const ManagedMemory& managed,
                                                              const VariableMemory& variables) {
    auto linked = std::make_unique<Linked>(memory);
    linked->parts = std::move(parts);
    for (const ptx::Module& part : linked->parts)
        if (part.address_size != 64) return LoadError{0, "only .address_size 64 can be run"};
    if (auto error = linked->link(managed, variables)) return *error;
    return std::unique_ptr<Module>(new Module(std::move(linked)));
}

std::vector<std::string> Module::kernel_names() const {
    std::vector<std::string> names;
    for (const ptx::Module& part : linked_->parts)
        for (const ptx::Declaration& declaration : part.declarations)
            if (const auto* function = std::get_if<ptx::Function>(&declaration))
                if (function->kernel && function->body &&
                    std::find(names.begin(), names.end(), function->name) == names.end())
                    names.push_back(function->name);
    return names;
}

std::variant<const DecodedKernel*, LoadError> Module::kernel(std::string_view name) {
    const std::string key(name);
    for (uint32_t part = 0; part < linked_->parts.size(); ++part) {
        auto number = linked_->find_function(part, key);
        if (!number || linked_->functions[*number].definition == nullptr ||
            !linked_->functions[*number].definition->kernel)
            continue;
        const Linked::Loaded& loaded = linked_->load(key, *number);
        if (loaded.error) return *loaded.error;
        return loaded.kernel.get();
    }
    return LoadError{0, fmt::format("the module has no kernel {}", name)};
}

const std::vector<Global>& Module::globals() const { return linked_->globals; }

const Global* Module::global(std::string_view name) const {
    for (const Global& global : linked_->globals)
        if (global.name == name) return &global;
    return nullptr;
}

}  // namespace smt::runtime::device::simulated
