// Inline PTX that reads %ctaid or %nctaid: `asm("mov.u32 %0, %%ctaid.x;" : "=r"(i))` becomes `(i) =
// blockIdx.x`, for which rule_block_index.cpp then sees to the name.
#include <fmt/format.h>

#include "rewriter/source/asm_text.h"
#include "rewriter/source/rules.h"

namespace smt::rewriter::source {

using namespace clang;

namespace {

// The expression that the instruction writes to, as it is written.
std::optional<std::string> output_text(const GCCAsmStmt* statement, const Text& text) {
    if (statement->getNumOutputs() != 1 || statement->getNumInputs() != 0) return std::nullopt;
    const SourceRange range = statement->getOutputExpr(0)->getSourceRange();
    const auto begin = text.spelled(range.getBegin()), end = text.past(range.getEnd());
    if (!begin || !end) return std::nullopt;
    return text.piece(*begin, *end);
}

}  // namespace

std::string refuse_asm(const Function& function, const Text& text) {
    for (const GCCAsmStmt* statement : function.assembly) {
        if (!examine_asm(statement->getAsmString()).move) continue;
        if (!text.here(statement->getBeginLoc()))
            return fmt::format(
                "calls {}, which reads %ctaid or %nctaid in {}, and only the text itself is rewritten",
                name_of(function), text.file(statement->getBeginLoc()));
        if (!text.spelled(statement->getBeginLoc()))
            return "inline PTX reads %ctaid or %nctaid in the macro " + text.macro(statement->getBeginLoc());
        if (!output_text(statement, text))
            return "inline PTX reads %ctaid or %nctaid and has other operands than one output";
    }
    return "";
}

void edit_asm(const Function& function, const Text& text, Edits& edits) {
    for (const GCCAsmStmt* statement : function.assembly) {
        const AsmFacts facts = examine_asm(statement->getAsmString());
        if (!facts.move) continue;
        edits.replace(*text.spelled(statement->getBeginLoc()), *text.past(statement->getEndLoc()),
                      fmt::format("({}) = {}.{}", *output_text(statement, text),
                                  facts.move->grid ? "gridDim" : "blockIdx", facts.move->component));
    }
}

}  // namespace smt::rewriter::source
