#include "rewriter/ptx/persistent/persist.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/persistent/compose.h"
#include "rewriter/ptx/persistent/inside.h"
#include "rewriter/ptx/persistent/rules.h"
#include "rewriter/ptx/printer.h"

namespace smt::ptx::persistent {

namespace {

// The loop's shared memory stands at a module's head or in its kernels, as a compiler likes.
constexpr const char* kLoopVariable = "N3smt6device6sharedEv";

std::string refuse_names(std::string_view text) {
    if (text.find(kLoopVariable) != text.npos) return "it has managed forms already";
    for (const char* name : {"%smt_", "$smt_", kLaunch})
        if (text.find(name) != text.npos) return "it has names that begin as ours do (smt_)";
    return "";
}

// Dynamic shared memory stands behind the static, which the loop adds to at its end. What a program knows of
// its place without saying so (a kernel without static shared memory finds it at the very beginning) stays
// true up to a step, if the loop's variables are multiples of it. An alignment of the dynamic memory would do
// the same, but for that an assembler pads all kernels of a module, the program's own too.
void widen(std::vector<Declaration>& helpers, uint64_t step) {
    for (Declaration& declaration : helpers) {
        auto* variable = std::get_if<Variable>(&declaration);
        if (!variable || variable->space != Space::kShared || variable->dimensions.size() != 1) continue;
        uint64_t& bytes = variable->dimensions.front();
        bytes = (bytes + step - 1) / step * step;
    }
}

Function declaration_of(const Function& function) {
    Function declaration;
    declaration.linkage = function.linkage;
    declaration.name = function.name;
    declaration.attributes = function.attributes;
    declaration.results = function.results;
    declaration.parameters = function.parameters;
    declaration.directives = function.directives;
    return declaration;
}

class Persist {
public:
    Persist(Module& module, bool inside) : module_(module), facts_(module), inside_(inside) {}

    void run(Output& output) {
        for (const Declaration& declaration : module_.declarations) {
            auto* function = std::get_if<Function>(&declaration);
            if (!function || !function->kernel || !function->body) continue;
            Verdict verdict = judge(*function, module_, facts_);
            if (verdict.refusal.empty()) verdict.refusal = refuse_name(*function, verdict);
            const std::vector<const Facts*> reached = facts_.reach(function->name);
            const bool system =
                std::any_of(reached.begin(), reached.end(), [](const Facts* each) { return each->system; });
            const bool waits =
                std::any_of(reached.begin(), reached.end(), [](const Facts* each) { return each->waits; });
            PersistentKernel kernel{
                function->name, "", verdict.refusal, verdict.reuse, verdict.limit, "", "", system, waits};
            if (verdict.refusal.empty()) {
                const Function body = inside_ ? with_checks(*function, verdict, kernel) : *function;
                kernel.managed = managed_name(function->name, verdict);
                kernel.form = name_of(verdict.form);
                entries_.emplace_back(compose(body, verdict, facts_));
                copied_.insert(verdict.copied.begin(), verdict.copied.end());
                step_ = std::max(step_, facts_.dynamic_step(reached));
            }
            output.kernels.push_back(std::move(kernel));
        }
        if (entries_.empty()) {
            output.reason = "no kernel of it can be managed";
            return;
        }
        add();
        output.text = print(module_);
    }

private:
    Function with_checks(const Function& function, Verdict& verdict, PersistentKernel& kernel) const {
        Inside inside = check_inside(function, module_, verdict);
        kernel.unchecked = std::move(inside.refusal);
        kernel.checked = kernel.unchecked.empty();
        if (!kernel.checked) return function;
        kernel.effects = std::move(inside.effects);
        return std::move(inside.function);
    }

    // In front of the debug sections, which end a module: the loop, then functions (which may call each other
    // in any order), then kernels.
    void add() {
        std::vector<Declaration> added = forms().helpers;
        if (step_) widen(added, step_);
        std::vector<Function> copies;
        for (const std::string& name : copied_)
            copies.push_back(copy_function(*facts_.find(name)->function, copied_, facts_));
        for (const Function& copy : copies) added.emplace_back(declaration_of(copy));
        for (Function& copy : copies) added.emplace_back(std::move(copy));
        for (Function& entry : entries_) added.emplace_back(std::move(entry));
        std::vector<Declaration>& all = module_.declarations;
        auto place = std::find_if(all.begin(), all.end(), [](const Declaration& declaration) {
            return std::holds_alternative<Section>(declaration);
        });
        all.insert(place, std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
    }

    // What is added must have names of its own.
    std::string refuse_name(const Function& entry, const Verdict& verdict) const {
        std::set<std::string> names{managed_name(entry.name, verdict)};
        for (const std::string& function : verdict.copied) names.insert(copy_name(function));
        for (const std::string& name : names)
            if (facts_.has_name(name))
                return fmt::format("there is something with the name of its managed form ({})", name);
        return "";
    }

    Module& module_;
    const ModuleFacts facts_;
    const bool inside_;
    std::vector<Function> entries_;
    std::set<std::string> copied_;
    uint64_t step_ = 0;  // of the loop's shared memory; 0: whatever it is
};

}  // namespace

Output persist(std::string_view text, bool inside) {
    Output output;
    output.reason = forms().problem;
    if (!output.reason.empty()) return output;
    auto parsed = parse(text);
    if (auto* diagnostic = std::get_if<Diagnostic>(&parsed)) {
        output.reason = "its PTX cannot be read: " + to_string(*diagnostic);
        return output;
    }
    Module& module = std::get<Module>(parsed);
    output.reason = refuse_module(module);
    if (output.reason.empty()) output.reason = refuse_names(text);
    if (output.reason.empty()) Persist(module, inside).run(output);
    return output;
}

}  // namespace smt::ptx::persistent
