#include "rewriter/ptx/register_limit.h"

#include <algorithm>
#include <utility>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"

namespace smt::ptx {

namespace {

bool says_itself(const Function& kernel) {
    using enum Directive::Kind;
    return kernel.find(kMinnctapersm) && (kernel.find(kMaxntid) || kernel.find(kReqntid));
}

void hold(Function& kernel, uint32_t registers) {
    for (Directive& directive : kernel.directives) {
        if (directive.kind != Directive::Kind::kMaxnreg || directive.values.empty()) continue;
        directive.values.front() = std::min<uint64_t>(directive.values.front(), registers);
        return;
    }
    Directive directive;
    directive.kind = Directive::Kind::kMaxnreg;
    directive.values = {registers};
    kernel.directives.push_back(std::move(directive));
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
        if (limit != limits.end()) hold(*function, limit->second);
    }
    return print(*module);
}

}  // namespace smt::ptx
