#include "runtime/jit/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "rewriter/ptx/parser.h"
#include "runtime/image/image.h"
#include "runtime/image/kernel_facts.h"

namespace smt::runtime::jit {

namespace {

// By name, what another image must have just so.
struct Exports {
    std::map<std::string, std::string> kernels;  // and their parameters
    std::map<std::string, std::string> visible;  // variables, and their types
    std::vector<std::string> variables;          // all
    bool shapes = false;                         // of PTX; a cubin says names only
};

std::string shape(const ptx::Variable& variable) {
    return fmt::format(".{}.v{}{}", ptx::name(variable.type), variable.vector,
                       fmt::format("[{}]", fmt::join(variable.dimensions, "][")));
}

std::optional<Exports> exports_of_text(std::string_view text, std::string& problem) {
    auto parsed = ptx::parse(text);
    if (auto* diagnostic = std::get_if<ptx::Diagnostic>(&parsed)) {
        problem = "its PTX cannot be read: " + ptx::to_string(*diagnostic);
        return std::nullopt;
    }
    Exports exports;
    exports.shapes = true;
    for (const ptx::Declaration& declaration : std::get<ptx::Module>(parsed).declarations) {
        if (auto* function = std::get_if<ptx::Function>(&declaration); function && function->kernel) {
            std::string parameters;
            for (const ptx::Variable& parameter : function->parameters) parameters += shape(parameter);
            exports.kernels[function->name] = parameters;
        } else if (auto* variable = std::get_if<ptx::Variable>(&declaration)) {
            exports.variables.push_back(variable->name);
            if (variable->linkage == ptx::Linkage::kVisible)
                exports.visible[variable->name] = shape(*variable);
        }
    }
    return exports;
}

std::optional<Exports> exports_of_cubin(std::string_view bytes, std::string& problem) {
    Exports exports;
    auto facts = image::kernel_facts(bytes);
    if (auto* unread = std::get_if<image::Problem>(&facts)) return problem = unread->text, std::nullopt;
    for (const image::KernelFacts& fact : std::get<std::vector<image::KernelFacts>>(facts)) {
        if (fact.kernel) exports.kernels[fact.name] = "";
    }
    auto variables = image::variable_names(bytes);
    if (auto* unread = std::get_if<image::Problem>(&variables)) return problem = unread->text, std::nullopt;
    exports.variables = std::get<std::vector<std::string>>(std::move(variables));
    return exports;
}

// Of a fatbin its newest PTX, which says more, or the first cubin.
const image::Entry* telling_entry(const std::vector<image::Entry>& entries) {
    const image::Entry* telling = nullptr;
    for (const image::Entry& entry : entries) {
        if (entry.kind == image::Kind::kOther) continue;
        const bool better =
            !telling || (entry.kind == image::Kind::kPtx &&
                         (telling->kind != image::Kind::kPtx || entry.architecture > telling->architecture));
        if (better) telling = &entry;
    }
    return telling;
}

std::optional<Exports> exports_of(std::string_view image, std::string& problem) {
    auto entries = image::read(image);
    if (auto* unread = std::get_if<image::Problem>(&entries)) return problem = unread->text, std::nullopt;
    const image::Entry* entry = telling_entry(std::get<std::vector<image::Entry>>(entries));
    if (!entry) return problem = "it has neither PTX nor machine code", std::nullopt;
    auto bytes = image::expand(*entry);
    if (auto* unread = std::get_if<image::Problem>(&bytes)) return problem = unread->text, std::nullopt;
    const std::string& content = std::get<std::string>(bytes);
    return entry->kind == image::Kind::kPtx ? exports_of_text(content, problem)
                                            : exports_of_cubin(content, problem);
}

std::string missing(const char* what, const std::map<std::string, std::string>& wanted,
                    const std::map<std::string, std::string>& found, bool shapes) {
    for (const auto& [name, shape] : wanted) {
        auto same = found.find(name);
        if (same == found.end()) return fmt::format("the managed image lacks {} {}", what, name);
        if (shapes && same->second != shape)
            return fmt::format("{} {} is another in the managed image ({}, not {})", what, name, same->second,
                               shape);
    }
    return "";
}

}  // namespace

std::string missing_from(std::string_view original, std::string_view replacement) {
    std::string problem;
    std::optional<Exports> wanted = exports_of(original, problem);
    if (!wanted) return "the program's image: " + problem;
    std::optional<Exports> found = exports_of(replacement, problem);
    if (!found) return "the managed image: " + problem;
    const bool shapes = wanted->shapes && found->shapes;
    std::string lack = missing("kernel", wanted->kernels, found->kernels, shapes);
    return lack.empty() && shapes ? missing("variable", wanted->visible, found->visible, true) : lack;
}

std::string missing_variables(const std::vector<std::string>& names, std::string_view replacement) {
    if (names.empty()) return "";
    std::string problem;
    std::optional<Exports> found = exports_of(replacement, problem);
    if (!found) return "the managed image: " + problem;
    for (const std::string& name : names) {
        if (std::count(found->variables.begin(), found->variables.end(), name) == 0)
            return "the managed image lacks variable " + name;
    }
    return "";
}

Symbols symbols_of(std::string_view image) {
    Symbols symbols;
    std::optional<Exports> found = exports_of(image, symbols.problem);
    if (!found) return symbols;
    for (const auto& [name, parameters] : found->kernels) symbols.kernels.push_back(name);
    symbols.variables = std::move(found->variables);
    return symbols;
}

}  // namespace smt::runtime::jit
