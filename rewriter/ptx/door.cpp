#include "rewriter/ptx/door.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "rewriter/device/door.h"
#include "rewriter/device/door_text.h"
#include "rewriter/ptx/layout.h"
#include "rewriter/ptx/persistent/walk.h"
#include "rewriter/ptx/printer.h"

namespace smt::ptx {

namespace {

using persistent::each_instruction;
using persistent::each_operand;
using persistent::loads_from_others;

constexpr const char* kParameter = "smt_door_launch";
constexpr uint32_t kDoorAlignment = 16;
constexpr uint64_t kMostParameterBytes = 4352;
constexpr int kFirstArchitecture = 70;  // with the prologue's loads

bool calls(const Instruction& instruction) { return instruction.opcode == Opcode::kCall; }

bool any_instruction(const Function& function, bool (*is)(const Instruction&)) {
    bool any = false;
    if (function.body) each_instruction(*function.body, [&](const Instruction& each) { any |= is(each); });
    return any;
}

// Names of which the address is taken.
class Taken {
public:
    explicit Taken(const Module& module) {
        for (const Declaration& each : module.declarations) {
            if (const auto* variable = std::get_if<Variable>(&each)) take(*variable);
            if (const auto* alias = std::get_if<Alias>(&each)) names_.insert(alias->target);
            if (const auto* function = std::get_if<Function>(&each)) take(*function);
        }
    }
    bool has(const std::string& name) const { return names_.contains(name); }

private:
    void take(const Variable& variable) {
        if (variable.initializer) take(*variable.initializer);
    }
    void take(const Initializer& initializer) {
        if (initializer.kind == Initializer::Kind::kSymbol) names_.insert(initializer.name);
        for (const Initializer& each : initializer.elements) take(each);
    }
    void take(const Function& function) {
        if (!function.body) {
            if (function.kernel) names_.insert(function.name);  // declared for such a use
            return;
        }
        persistent::each_statement(*function.body, [&](const Statement& statement) {
            if (const auto* variable = std::get_if<Variable>(&statement)) take(*variable);
        });
        each_instruction(*function.body, [&](const Instruction& instruction) {
            for (const Operand& operand : instruction.operands)
                each_operand(operand, [&](const Operand& each) {
                    if (each.kind == Operand::Kind::kSymbol) names_.insert(each.name);
                });
        });
    }

    std::set<std::string> names_;
};

int architecture_of(const Module& module) {
    constexpr std::string_view kPrefix = "sm_";
    for (const std::string& each : module.target) {
        int number = 0;
        if (each.starts_with(kPrefix) &&
            std::from_chars(each.data() + kPrefix.size(), each.data() + each.size(), number).ec ==
                std::errc())
            return number;
    }
    return 0;
}

// What is put into each kernel, as a kernel: its parameter and its body.
Function prologue_for(int architecture) {
    const int version = door_ptx_version(architecture);
    const std::string text =
        fmt::format(
            ".version {}.{}\n.target sm_{}\n.address_size 64\n.entry door(.param .align {} .b8 {}[{}])",
            version / 10, version % 10, architecture, kDoorAlignment, kParameter, sizeof(DoorLaunch)) +
        door_text(kParameter, architecture >= kFirstDoorWithClusters, false) + "}\n";
    auto parsed = parse(text);
    return std::get<Function>(std::get<Module>(parsed).declarations.front());
}

// Where its parameters end; a huge number where no memory is that large.
uint64_t parameter_bytes(const Function& kernel) {
    uint64_t end = 0;
    for (const Variable& each : kernel.parameters) {
        const uint64_t alignment = std::max(1u, alignment_of(each));
        end = (end + alignment - 1) / alignment * alignment;
        if (__builtin_add_overflow(end, bytes_of(each), &end)) return ~uint64_t{0} - kDoorAlignment;
    }
    return end;
}

}  // namespace

std::variant<WithDoors, Diagnostic> put_doors(std::string_view text, LeaveAlone leave_alone) {
    auto parsed = parse(text);
    if (auto* problem = std::get_if<Diagnostic>(&parsed)) return std::move(*problem);
    auto& module = std::get<Module>(parsed);
    const int architecture = architecture_of(module);
    const bool old = architecture < kFirstArchitecture || module.address_size != 64;
    const Taken taken(module);
    bool functions_wait = false;
    for (const Declaration& each : module.declarations) {
        const auto* function = std::get_if<Function>(&each);
        functions_wait |= function && !function->kernel && any_instruction(*function, loads_from_others);
    }
    const auto why_not = [&](const Function& kernel, uint64_t offset) -> std::string {
        if (old) return fmt::format("its PTX is for sm_{} and {} bits", architecture, module.address_size);
        const std::string_view own = leave_alone ? leave_alone(kernel.name) : "";
        if (!own.empty()) return std::string(own);
        if (taken.has(kernel.name)) return "device code may launch it";
        if (offset + sizeof(DoorLaunch) > kMostParameterBytes) return "it has no room for a parameter";
        const bool named = std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                                       [](const Variable& each) { return each.name == kParameter; });
        return named ? "it has a parameter of the door's name" : "";
    };

    WithDoors result;
    const Function prologue = old ? Function{} : prologue_for(architecture);
    bool any = false;
    for (Declaration& each : module.declarations) {
        auto* kernel = std::get_if<Function>(&each);
        if (!kernel || !kernel->kernel || !kernel->body) continue;
        const uint64_t offset =
            (parameter_bytes(*kernel) + kDoorAlignment - 1) / kDoorAlignment * kDoorAlignment;
        DoorEntry& entry = result.entries.emplace_back();
        entry.name = kernel->name;
        entry.reason = why_not(*kernel, offset);
        if (!entry.reason.empty()) continue;
        entry.offset = static_cast<uint32_t>(offset);
        entry.waits = any_instruction(*kernel, loads_from_others) ||
                      (functions_wait && any_instruction(*kernel, calls));
        kernel->parameters.push_back(prologue.parameters.front());
        kernel->body->statements.insert(kernel->body->statements.begin(), *prologue.body);
        any = true;
    }
    if (!any) return result;
    const int oldest = door_ptx_version(architecture);
    if (module.version_major * 10 + module.version_minor < oldest) {
        module.version_major = oldest / 10;
        module.version_minor = oldest % 10;
    }
    result.text = print(module);
    return result;
}

}  // namespace smt::ptx
