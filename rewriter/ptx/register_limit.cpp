#include "rewriter/ptx/register_limit.h"

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"

namespace smt::ptx {

namespace {

bool says_itself(const Function& kernel) {
    return kernel.find(Directive::Kind::kMaxnreg) || kernel.find(Directive::Kind::kMinnctapersm);
}

}  // namespace

std::string limit_registers(std::string_view text, const RegisterLimits& limits) {
    if (limits.empty()) return std::string(text);
    auto parsed = parse(text);
    Module* module = std::get_if<Module>(&parsed);
    if (!module) return std::string(text);
    for (Declaration& declaration : module->declarations) {
        auto* function = std::get_if<Function>(&declaration);
        if (!function || !function->kernel || !function->body || says_itself(*function)) continue;
        auto limit = limits.find(function->name);
        if (limit == limits.end()) continue;
        Directive directive;
        directive.kind = Directive::Kind::kMaxnreg;
        directive.values = {limit->second};
        function->directives.push_back(std::move(directive));
    }
    return print(*module);
}

}  // namespace smt::ptx
