#include "rewriter/ptx/fence/fence.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "rewriter/device/fence.h"
#include "rewriter/ptx/fence/checks.h"
#include "rewriter/ptx/fence/snippets.h"
#include "rewriter/ptx/persistent/walk.h"
#include "rewriter/ptx/printer.h"

namespace smt::ptx::fence {

namespace {

// CUresult of a kernel that was refused, should it be launched all the same.
constexpr uint32_t kNotSupported = 801;

int architecture_of(const Module& module) {
    constexpr std::string_view kStart = "sm_";
    for (const std::string& each : module.target) {
        int number = 0;
        if (each.starts_with(kStart))
            std::from_chars(each.data() + kStart.size(), each.data() + each.size(), number);
        if (number) return number;
    }
    return 0;
}

template <typename Visit>
void each_function(Module& module, const Visit& visit) {
    for (Declaration& declaration : module.declarations)
        if (auto* function = std::get_if<Function>(&declaration)) visit(*function);
}

std::string name_of(const Declaration& declaration) {
    if (const auto* variable = std::get_if<Variable>(&declaration)) return variable->name;
    if (const auto* function = std::get_if<Function>(&declaration)) return function->name;
    const auto* alias = std::get_if<Alias>(&declaration);
    return alias ? alias->name : "";
}

std::string refuse_module(const Module& module) {
    if (module.address_size != 64) return "its addresses have 32 bits";
    if (const int architecture = architecture_of(module); architecture < kFirstArchitecture)
        return fmt::format("it is for sm_{}, where the threads of a warp ran in step", architecture);
    size_t functions = 0;
    for (const Declaration& declaration : module.declarations) {
        if (name_of(declaration).starts_with(kPrefix))
            return fmt::format("{} is a name of the fence's", name_of(declaration));
        functions += std::holds_alternative<Function>(declaration);
    }
    return functions < kMostFenceFunctions ? "" : "it has too many functions";
}

class Fencing {
public:
    explicit Fencing(Module& module) : module_(module), architecture_(architecture_of(module)) {
        for (const Declaration& declaration : module.declarations) {
            if (const auto* variable = std::get_if<Variable>(&declaration))
                variables_[variable->name] = *variable;
            if (const auto* alias = std::get_if<Alias>(&declaration)) aliases_[alias->name] = alias->target;
        }
    }

    Fenced run() {
        each_function(module_, [this](Function& function) { read(function); });
        spread_refusals();
        Fenced result;
        each_function(module_, [&](Function& function) { rewrite(function, result); });
        add_declarations();
        result.text = print(module_);
        return result;
    }

private:
    struct Read {
        std::string refusal;
        std::set<std::string> calls;
        std::optional<Checks> checks;
    };

    void read(const Function& function) {
        if (!function.body) return;
        Read& found = read_[function.name];
        found.checks.emplace(variables_, function, static_cast<uint32_t>(order_.size()), architecture_);
        found.refusal = found.checks->refusal();
        order_.push_back(function.name);
        persistent::each_instruction(*function.body, [&](const Instruction& instruction) {
            if (const std::string name = persistent::callee(instruction); !name.empty())
                found.calls.insert(aliases_.contains(name) ? aliases_.at(name) : name);
        });
    }

    std::string why_not_called(const std::string& name) const {
        if (name == "vprintf" || name == "__assertfail") return "";
        const auto found = read_.find(name);
        if (found == read_.end()) return fmt::format("calls {}, whose code is not here", name);
        return found->second.refusal.empty() ? ""
                                             : fmt::format("calls {}, which {}", name, found->second.refusal);
    }

    void spread_refusals() {
        for (bool changed = true; changed;) {
            changed = false;
            for (auto& [name, found] : read_) {
                for (const std::string& called : found.calls) {
                    if (!found.refusal.empty()) break;
                    found.refusal = why_not_called(called);
                    changed |= !found.refusal.empty();
                }
            }
        }
    }

    void rewrite(Function& function, Fenced& result) const {
        if (!function.body) return;
        const Read& found = read_.at(function.name);
        result.functions.push_back({function.name, function.kernel, found.refusal});
        if (!found.refusal.empty()) {
            function.body->statements =
                statements(fmt::format("call smt_fence_end, ({0}, 0, 0, {1}, {1}, {1});\nret;\n",
                                       kNotSupported, kNoFenceBlock),
                           {});
            return;
        }
        result.accesses += found.checks->accesses();
        result.checks += found.checks->checks();
        function.body = found.checks->body();
    }

    void add_declarations() {
        std::vector<Declaration> own = declarations(architecture_);
        auto first =
            std::find_if(module_.declarations.begin(), module_.declarations.end(),
                         [](const Declaration& each) { return std::holds_alternative<Function>(each); });
        module_.declarations.insert(first, std::make_move_iterator(own.begin()),
                                    std::make_move_iterator(own.end()));
        if (std::pair(module_.version_major, module_.version_minor) < std::pair(kMajor, kMinor)) {
            module_.version_major = kMajor;
            module_.version_minor = kMinor;
        }
    }

    Module& module_;
    const int architecture_;
    Variables variables_;
    std::map<std::string, std::string> aliases_;
    std::map<std::string, Read> read_;
    std::vector<std::string> order_;
};

}  // namespace

std::variant<Fenced, Diagnostic> fence(std::string_view text) {
    auto parsed = parse(text);
    if (auto* problem = std::get_if<Diagnostic>(&parsed)) return std::move(*problem);
    auto& module = std::get<Module>(parsed);
    Fenced refused;
    refused.reason = refuse_module(module);
    if (!refused.reason.empty()) return refused;
    return Fencing(module).run();
}

bool is_fence_function(std::string_view name) { return name == "smt_fence_end" || name == "smt_fence_leave"; }

bool is_of_fence(const Instruction& instruction, const Function& function) {
    return is_fence_function(function.name) ||
           (!instruction.operands.empty() && instruction.operands[0].name.starts_with(kShared));
}

bool is_look(const Instruction& instruction) {
    return instruction.opcode == Opcode::kLd && !instruction.operands.empty() &&
           instruction.operands[0].name.starts_with("%fence_");
}

}  // namespace smt::ptx::fence
