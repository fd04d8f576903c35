// ptx_persist [--show] [--inside] FILE: the managed form of a PTX module, and a comment for each kernel.
// --inside: with checks inside blocks.
// --show: of what was added only what the program's own code became, without the loop around it; and where
// there is dynamic shared memory, what stands in front of it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/persistent/compose.h"
#include "rewriter/ptx/persistent/persist.h"
#include "rewriter/ptx/printer.h"
#include "tests/ptx/files.h"

namespace smt::ptx {
namespace {

// The scope that holds a body, in place of the whole loop.
Function without_loop(Function entry) {
    std::vector<Statement> kept;
    for (Statement& statement : entry.body->statements) {
        auto* scope = std::get_if<Scope>(&statement);
        auto* first =
            scope && !scope->statements.empty() ? std::get_if<Variable>(&scope->statements[0]) : nullptr;
        if (first && first->name == persistent::kBlock) kept.push_back(std::move(statement));
    }
    entry.body->statements = std::move(kept);
    return entry;
}

bool is_dynamic(const Declaration& declaration) {
    auto* variable = std::get_if<Variable>(&declaration);
    return variable && variable->space == Space::kShared && variable->linkage == Linkage::kExtern;
}

bool is_of_loop(const Declaration& declaration) {
    auto* variable = std::get_if<Variable>(&declaration);
    return variable && variable->name.starts_with("_ZZN3smt6device");
}

void show(const Module& module, const persistent::Output& output) {
    Module shown = module;
    shown.declarations.clear();
    std::set<std::string> managed;
    const bool dynamic = std::ranges::any_of(module.declarations, is_dynamic);
    for (const persistent::PersistentKernel& kernel : output.kernels) managed.insert(kernel.managed);
    for (const Declaration& declaration : module.declarations) {
        auto* function = std::get_if<Function>(&declaration);
        if (dynamic && (is_dynamic(declaration) || is_of_loop(declaration)))
            shown.declarations.push_back(declaration);
        if (!function || !function->body) continue;
        if (managed.contains(function->name))
            shown.declarations.emplace_back(without_loop(*function));
        else if (function->name.starts_with(persistent::kPrefix))
            shown.declarations.push_back(declaration);
    }
    std::fputs(print(shown).c_str(), stdout);
}

std::string limit(const persistent::PersistentKernel& kernel) {
    if (kernel.reuse == Reuse::kAlways) return "";
    return (kernel.reuse == Reuse::kNever ? ", one block a worker: " : ", for whole warps: ") + kernel.limit;
}

int persist(const char* path, bool shows, bool inside) {
    const persistent::Output output = persistent::persist(read_text(path), inside);
    for (const persistent::PersistentKernel& kernel : output.kernels) {
        fmt::print("// {}: {}{}{}{}\n", kernel.name,
                   kernel.managed.empty() ? "refused: " + kernel.reason : kernel.managed,
                   kernel.form.empty() ? "" : " (" + kernel.form + ")", limit(kernel),
                   kernel.unchecked.empty() ? "" : ", not left inside a block: " + kernel.unchecked);
    }
    if (!output.reason.empty()) fmt::print("// left as it was: {}\n", output.reason);
    if (output.text.empty()) return 0;
    auto parsed = parse(output.text);
    if (auto* diagnostic = std::get_if<Diagnostic>(&parsed)) {
        fmt::print(stderr, "{}: what was made of it: {}\n", path, to_string(*diagnostic));
        return 1;
    }
    const Module& module = std::get<Module>(parsed);
    if (print(module) != output.text) {
        fmt::print(stderr, "{}: what was made of it prints otherwise\n", path);
        return 1;
    }
    if (shows)
        show(module, output);
    else
        std::fputs(output.text.c_str(), stdout);
    return 0;
}

}  // namespace
}  // namespace smt::ptx

int main(int count, char** arguments) {
    bool shows = false, inside = false;
    for (int i = 1; i + 1 < count; ++i) {
        shows |= std::strcmp(arguments[i], "--show") == 0;
        inside |= std::strcmp(arguments[i], "--inside") == 0;
    }
    if (count != 2 + shows + inside) {
        fmt::print(stderr, "usage: ptx_persist [--show] [--inside] FILE\n");
        return 2;
    }
    return smt::ptx::persist(arguments[count - 1], shows, inside);
}
