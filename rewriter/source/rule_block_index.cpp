// Functions and lambdas that read blockIdx or gridDim.
//
// In a kernel's body these names are parameters (rule_entry.cpp), so it stays as it is, and so does a lambda
// with a capture default. A lambda that lists its captures gets one more. A function that the kernel calls,
// and a lambda that captures nothing, begin with variables of these names:
//
//     __device__ int cell() { const uint3 blockIdx = ::smt::block(); return blockIdx.x; }
//
// which also serves macros. A read outside of a body (a default argument, a member's initializer) says
// ::smt::block() itself.
#include <clang/AST/Attr.h>
#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>

#include "rewriter/source/asm_text.h"
#include "rewriter/source/rules.h"

namespace smt::rewriter::source {

using namespace clang;

namespace {

const CompoundStmt* body_of(const Function& function) {
    if (function.lambda) return function.lambda->getCompoundStmtBody();
    return dyn_cast_or_null<CompoundStmt>(function.definition->getBody());
}

bool is_kernel(const Function& function) {
    return !function.lambda && function.definition->hasAttr<CUDAGlobalAttr>();
}

// Those of inline PTX too: rule_asm.cpp makes them reads of blockIdx.
std::vector<Read> reads_of(const Function& function) {
    std::vector<Read> reads = function.reads;
    for (const GCCAsmStmt* statement : function.assembly)
        if (const AsmFacts facts = examine_asm(statement->getAsmString()); facts.move)
            reads.push_back({facts.move->grid, statement->getBeginLoc()});
    return reads;
}

bool inside_body(const Read& read, const Function& function) {
    const CompoundStmt* body = body_of(function);
    if (!body) return false;
    const SourceManager& sources = function.definition->getASTContext().getSourceManager();
    const SourceLocation place = sources.getExpansionLoc(read.where);
    return !sources.isBeforeInTranslationUnit(place, sources.getExpansionLoc(body->getLBracLoc())) &&
           !sources.isBeforeInTranslationUnit(sources.getExpansionLoc(body->getRBracLoc()), place);
}

// How the names come into a function's body.
enum class Supply { kParameter, kFromAround, kCapture, kVariable };

Supply supply(const Function& function) {
    if (is_kernel(function)) return Supply::kParameter;
    const Function* root = &function;
    while (root->lambda && root->around) root = root->around;
    if (!function.lambda || !is_kernel(*root)) return Supply::kVariable;
    if (function.lambda->getCaptureDefault() != LCD_None) return Supply::kFromAround;
    return function.lambda->capture_size() ? Supply::kCapture : Supply::kVariable;
}

bool is_for_both_sides(const FunctionDecl* function) {
    const auto* host = function->getAttr<CUDAHostAttr>();
    return host && !host->isImplicit() && function->hasAttr<CUDADeviceAttr>();
}

void add_variable(const Function& function, bool grid, const Text& text, Edits& edits) {
    const unsigned brace = *text.spelled(body_of(function)->getLBracLoc());
    const char* variable =
        grid ? "const dim3 gridDim = ::smt::grid();" : "const uint3 blockIdx = ::smt::block();";
    if (is_for_both_sides(function.definition))
        edits.insert(brace + 1, fmt::format("\n#ifdef __CUDA_ARCH__\n    {}\n#endif\n#line {}\n", variable,
                                            text.line(brace)));
    else
        edits.insert(brace + 1, fmt::format(" {}", variable));
}

void supply_name(const Function& function, bool grid, const Text& text, Edits& edits) {
    switch (supply(function)) {
        case Supply::kParameter:
            return;
        case Supply::kFromAround:
            return supply_name(*function.around, grid, text, edits);
        case Supply::kVariable:
            return add_variable(function, grid, text, edits);
        case Supply::kCapture:
            edits.insert(*text.spelled(function.lambda->getIntroducerRange().getEnd()),
                         grid ? ", gridDim" : ", blockIdx");
            return supply_name(*function.around, grid, text, edits);
    }
}

// The first function outwards that has to say smt::block() for this one.
const Function* speaker(const Function& function) {
    switch (supply(function)) {
        case Supply::kParameter:
            return nullptr;
        case Supply::kVariable:
            return &function;
        default:
            return speaker(*function.around);
    }
}

std::string refuse_body(const Function& function, const Text& text) {
    const SourceLocation brace =
        body_of(function) ? body_of(function)->getLBracLoc() : function.definition->getLocation();
    if (!text.here(brace))
        return fmt::format(
            "calls {}, which reads blockIdx or gridDim in {}, and only the text itself is rewritten",
            name_of(function), text.file(brace));
    if (!body_of(function)) return name_of(function) + " reads blockIdx or gridDim in a try block";
    if (!text.spelled(brace) ||
        (function.lambda && !text.spelled(function.lambda->getIntroducerRange().getEnd())))
        return fmt::format("{} reads blockIdx or gridDim, and comes out of the macro {}", name_of(function),
                           text.macro(brace));
    return "";
}

}  // namespace

std::string refuse_reads(const Function& function, const Text& text) {
    for (const Read& read : reads_of(function)) {
        if (inside_body(read, function)) {
            if (is_kernel(function)) continue;
            const std::string reason = refuse_body(function, text);
            if (!reason.empty()) return reason;
            const Function* outer = speaker(function);
            if (outer && outer != &function && !refuse_body(*outer, text).empty())
                return refuse_body(*outer, text);
        } else if (!text.here(read.where)) {
            return fmt::format(
                "calls {}, which reads blockIdx or gridDim in {}, and only the text itself is rewritten",
                name_of(function), text.file(read.where));
        } else if (!text.spelled(read.where)) {
            return fmt::format("{} reads blockIdx or gridDim in the macro {}, outside of its body",
                               name_of(function), text.macro(read.where));
        }
    }
    return refuse_asm(function, text);
}

bool reads_shared_index(const Function& function) {
    for (const Read& read : reads_of(function))
        if (!inside_body(read, function) || speaker(function)) return true;
    return false;
}

bool shares_index(const Managed& managed) {
    for (const Function* function : managed.functions)
        if (reads_shared_index(*function)) return true;
    return false;
}

void edit_reads(const Managed& managed, const Text& text, Edits& edits) {
    for (const Function* function : managed.functions) {
        edit_asm(*function, text, edits);
        for (const Read& read : reads_of(*function)) {
            if (inside_body(read, *function)) {
                supply_name(*function, read.grid, text, edits);
            } else {
                const unsigned at = *text.spelled(read.where);
                edits.replace(at, *text.past(read.where), read.grid ? "::smt::grid()" : "::smt::block()");
            }
        }
    }
}

}  // namespace smt::rewriter::source
