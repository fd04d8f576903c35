// Returns ahead of a barrier.
//
// When some of a block's threads return from a kernel, the hardware no longer waits for them at barriers, and
// warp-wide operations go on without them. In a worker they only leave the body, and wait for its next block.
// Such a kernel says smt::depart() in place of each return, which ends the thread, and its workers run one
// block each (kSingle).
//
// A return does no harm where no barrier or warp-wide operation can come after it: none stands further down
// in the body, and none in a loop around it. What a called function does counts where it is called.
#include <clang/AST/ASTContext.h>
#include <fmt/format.h>

#include <algorithm>

#include "rewriter/source/asm_text.h"
#include "rewriter/source/rules.h"

namespace smt::rewriter::source {

using namespace clang;

namespace {

// The toolkit's functions in which other threads take part, by what their names have in common.
bool wide_by_name(const FunctionDecl* function) {
    if (!function->getDeclName().isIdentifier()) return false;
    const std::string name = function->getName().str();
    if (!name.starts_with("__") && !function->getBuiltinID()) return false;
    for (const char* part : {"barrier", "shfl", "vote", "ballot", "match", "mma", "elect", "redux"})
        if (name.find(part) != std::string::npos) return true;
    if (name == "__all" || name == "__any") return true;
    for (size_t at = name.find("sync"); at != std::string::npos; at = name.find("sync", at + 1))
        if (at == 0 || name[at - 1] != 'a') return true;  // not "async"
    return false;
}

bool wide_alone(const Program& program, const FunctionDecl* key) {
    if (wide_by_name(key)) return true;
    const Function* function = program.find(key);
    if (!function) return false;
    return std::any_of(function->assembly.begin(), function->assembly.end(), [](const GCCAsmStmt* statement) {
        return examine_asm(statement->getAsmString()).wide;
    });
}

bool wide(const Program& program, const FunctionDecl* key) {
    const auto reached = program.reach(key);
    return std::any_of(reached.begin(), reached.end(),
                       [&](const FunctionDecl* one) { return wide_alone(program, one); });
}

struct Operations {
    bool anywhere = false;  // in a lambda, or behind a pointer: no place can be told
    std::vector<unsigned> places;
};

Operations wide_operations(const Program& program, const Function& kernel, const Text& text) {
    Operations found;
    for (const Use& use : kernel.uses) {
        if (!wide(program, use.target)) continue;
        const Function* target = program.find(use.target);
        if (target && target->lambda) found.anywhere = true;
        found.places.push_back(text.used(use.where).value_or(0));
    }
    for (const GCCAsmStmt* statement : kernel.assembly)
        if (examine_asm(statement->getAsmString()).wide)
            found.places.push_back(text.used(statement->getBeginLoc()).value_or(0));
    if (kernel.indirect) found.anywhere = true;
    if (kernel.jumps && !found.places.empty()) found.anywhere = true;
    return found;
}

bool is_last(const ReturnStmt* statement, const Function& kernel) {
    const auto* body = dyn_cast_or_null<CompoundStmt>(kernel.definition->getBody());
    return body && !body->body_empty() && body->body_back()->getBeginLoc() == statement->getBeginLoc();
}

bool does_harm(const ReturnStmt* statement, const Function& kernel, const Operations& operations,
               const Text& text) {
    if (is_last(statement, kernel)) return false;
    if (operations.anywhere) return true;
    const unsigned place = text.used(statement->getBeginLoc()).value_or(0);
    for (const unsigned operation : operations.places) {
        if (operation > place) return true;
        for (const SourceRange& loop : kernel.loops) {
            const unsigned begin = text.used(loop.getBegin()).value_or(0);
            const unsigned end = text.past(loop.getEnd()).value_or(~0u);
            if (begin <= operation && begin <= place && place < end) return true;
        }
    }
    return false;
}

}  // namespace

bool leaves_early(const Program& program, const Function& kernel, const Text& text) {
    if (kernel.returns.empty()) return false;
    const Operations operations = wide_operations(program, kernel, text);
    return std::any_of(kernel.returns.begin(), kernel.returns.end(), [&](const ReturnStmt* statement) {
        return does_harm(statement, kernel, operations, text);
    });
}

std::string refuse_early_returns(const Function& kernel, const Text& text) {
    for (const ReturnStmt* statement : kernel.returns) {
        if (!text.spelled(statement->getBeginLoc()))
            return "returns ahead of a barrier or a warp-wide operation in the macro " +
                   text.macro(statement->getBeginLoc());
        if (statement->getRetValue() && !text.past(statement->getRetValue()->getEndLoc()))
            return "returns what a macro calls";
    }
    return "";
}

void edit_early_returns(const Function& kernel, const Text& text, Edits& edits) {
    constexpr const char* kDepart = "::smt::depart(smt_launch)";
    for (const ReturnStmt* statement : kernel.returns) {
        const unsigned at = *text.spelled(statement->getBeginLoc());
        const unsigned end = *text.past(statement->getBeginLoc());
        if (!statement->getRetValue()) {
            edits.replace(at, end, kDepart);
        } else {  // return f();
            edits.replace(at, end, "do {");
            edits.insert(*text.past(statement->getRetValue()->getEndLoc()),
                         fmt::format("; {}; }} while (false)", kDepart));
        }
    }
}

}  // namespace smt::rewriter::source
