// Returns ahead of a barrier.
//
// When some of a block's threads return from a kernel, the hardware no longer waits for them at barriers, and
// warp-wide operations go on without them. In a worker they only leave the body, and wait for its next block.
// Such a kernel says smt::depart() in place of each return, which ends the thread, and its workers run one
// block each (kSingle).
//
// A return does no harm where no barrier or warp-wide operation can come after it: none stands further down
// in the body, and none in a loop around it. What a called function does counts where it is called. And of
// warp-wide operations none where a warp returns as a whole: its condition is the same in all of its threads.
//
//     const unsigned row = blockIdx.x * 8 + threadIdx.x / 32;
//     if (row >= rows) return;
//     ... __shfl_xor_sync(~0u, sum, 16) ...
#include <clang/AST/ASTContext.h>
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "rewriter/source/asm_text.h"
#include "rewriter/source/rules.h"
#include "rewriter/source/uniformity.h"

namespace smt::rewriter::source {

using namespace clang;

namespace {

// How many threads take part.
enum class Width { kThread, kWarp, kBlock };

bool has_any(const std::string& name, std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const char* part) { return name.find(part) != std::string::npos; });
}

// The toolkit's functions in which other threads take part, by what their names have in common.
Width width_by_name(const FunctionDecl* function) {
    if (!function->getDeclName().isIdentifier()) return Width::kThread;
    const std::string name = function->getName().str();
    if (!name.starts_with("__") && !function->getBuiltinID()) return Width::kThread;
    if (has_any(name, {"shfl", "vote", "ballot", "match", "elect", "redux", "syncwarp", "bar_warp"}))
        return Width::kWarp;
    if (name == "__all" || name == "__any" || name == "__all_sync" || name == "__any_sync")
        return Width::kWarp;
    if (has_any(name, {"barrier", "mma"})) return Width::kBlock;
    for (size_t at = name.find("sync"); at != std::string::npos; at = name.find("sync", at + 1))
        if (at == 0 || name[at - 1] != 'a') return Width::kBlock;  // not "async"
    return Width::kThread;
}

Width width(const Program& program, const FunctionDecl* key) {
    Width widest = Width::kThread;
    for (const FunctionDecl* one : program.reach(key)) {
        widest = std::max(widest, width_by_name(one));
        const Function* function = program.find(one);
        if (!function) continue;
        for (const GCCAsmStmt* statement : function->assembly)
            if (examine_asm(statement->getAsmString()).wide) widest = Width::kBlock;
    }
    return widest;
}

struct Operations {
    bool anywhere = false;  // in a lambda, or behind a pointer: no place can be told
    std::vector<unsigned> places;
};

// Those of that width or a wider one.
Operations wide_operations(const Program& program, const Function& kernel, const Text& text,
                           Width width_from) {
    Operations found;
    for (const Use& use : kernel.uses) {
        if (width(program, use.target) < width_from) continue;
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

// The conditions on which a return is reached, if these alone decide: it stands in no loop and no switch.
class Way {
public:
    Way(const Stmt* body, SourceLocation place) : place_(place) { simple_ = leads_to(body) && simple_; }
    bool simple() const { return simple_; }
    const std::vector<const Expr*>& conditions() const { return conditions_; }

private:
    bool leads_to(const Stmt* at) {
        if (!at) return false;
        if (isa<ReturnStmt>(at)) return at->getBeginLoc() == place_;
        for (const Stmt* child : at->children()) {
            if (!leads_to(child)) continue;
            const auto* branch = dyn_cast<IfStmt>(at);
            if (branch && !branch->getConditionVariable() && branch->getCond()) {
                if (!branch->isConstexpr()) conditions_.push_back(branch->getCond());
            } else if (!isa<CompoundStmt>(at)) {
                simple_ = false;
            }
            return true;
        }
        return false;
    }

    const SourceLocation place_;
    bool simple_ = true;
    std::vector<const Expr*> conditions_;
};

bool is_of_whole_warps(const ReturnStmt* statement, const FunctionDecl* kernel) {
    const Way way(kernel->getBody(), statement->getBeginLoc());
    return way.simple() &&
           std::none_of(way.conditions().begin(), way.conditions().end(),
                        [&](const Expr* condition) { return may_differ(uniformity_of(condition, kernel)); });
}

}  // namespace

Reuse reuse_after_returns(const Program& program, const Function& kernel, const Text& text) {
    if (kernel.returns.empty()) return Reuse::kAlways;
    const Operations all = wide_operations(program, kernel, text, Width::kWarp);
    const Operations of_blocks = wide_operations(program, kernel, text, Width::kBlock);
    Reuse reuse = Reuse::kAlways;
    for (const ReturnStmt* statement : kernel.returns) {
        if (!does_harm(statement, kernel, all, text)) continue;
        if (all.anywhere || does_harm(statement, kernel, of_blocks, text) ||
            !is_of_whole_warps(statement, kernel.definition))
            return Reuse::kNever;
        reuse = Reuse::kByWarps;
    }
    return reuse;
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
