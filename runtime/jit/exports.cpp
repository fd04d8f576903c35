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
using Exports = std::map<std::string, std::string>;

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
    for (const ptx::Declaration& declaration : std::get<ptx::Module>(parsed).declarations) {
        if (auto* function = std::get_if<ptx::Function>(&declaration); function && function->kernel) {
            std::string parameters;
            for (const ptx::Variable& parameter : function->parameters) parameters += shape(parameter);
            exports["kernel " + function->name] = parameters;
        } else if (auto* variable = std::get_if<ptx::Variable>(&declaration)) {
            if (variable->linkage == ptx::Linkage::kVisible) exports["variable " + variable->name] = shape(*variable);
        }
    }
    return exports;
}

std::optional<Exports> exports_of(std::string_view image, std::string& problem) {
    auto entries = image::read(image);
    if (auto* unread = std::get_if<image::Problem>(&entries)) return problem = unread->text, std::nullopt;
    const image::Entry& entry = std::get<std::vector<image::Entry>>(entries).front();
    auto bytes = image::expand(entry);
    if (auto* unread = std::get_if<image::Problem>(&bytes)) return problem = unread->text, std::nullopt;
    if (entry.kind == image::Kind::kPtx) return exports_of_text(std::get<std::string>(bytes), problem);
    auto facts = image::kernel_facts(std::get<std::string>(bytes));
    if (auto* unread = std::get_if<image::Problem>(&facts)) return problem = unread->text, std::nullopt;
    Exports exports;
    for (const image::KernelFacts& fact : std::get<std::vector<image::KernelFacts>>(facts)) {
        if (fact.kernel) exports["kernel " + fact.name] = "";
    }
    return exports;
}

}  // namespace

std::string missing_from(std::string_view original, std::string_view replacement) {
    std::string problem;
    std::optional<Exports> wanted = exports_of(original, problem);
    if (!wanted) return "the program's image: " + problem;
    std::optional<Exports> found = exports_of(replacement, problem);
    if (!found) return "the managed image: " + problem;
    for (const auto& [name, shape] : *wanted) {
        auto same = found->find(name);
        if (same == found->end()) return "the managed image lacks " + name;
        if (same->second != shape) return fmt::format("{} is another in the managed image ({}, not {})", name, same->second, shape);
    }
    return "";
}

}  // namespace smt::runtime::jit
