// Which kernels become persistent, and why others do not.
#include "rewriter/source/judge.h"

#include <clang/AST/Attr.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/Basic/SourceManager.h>

#include <algorithm>
#include <optional>

#include "rewriter/source/asm_text.h"
#include "rewriter/source/rules.h"

namespace smt::rewriter::source {

using namespace clang;

std::string name_of(const Function& function) {
    return function.lambda ? "a lambda" : function.definition->getQualifiedNameAsString();
}

namespace {

bool in_system(const FunctionDecl* function) {
    return function->getASTContext().getSourceManager().isInSystemHeader(function->getLocation());
}

std::string plain_name(const FunctionDecl* function) {
    return function->getDeclName().isIdentifier() ? function->getName().str() : std::string();
}

// Functions of the toolkit that only a whole grid, or a cluster, may call.
std::string refuse_by_name(const FunctionDecl* function) {
    const std::string name = plain_name(function);
    if (name.starts_with("__cluster") || name == "clusterIdx")
        return "works with thread-block clusters (" + name + ")";
    if (name.starts_with("cudaLaunch") || name.starts_with("cudaGraphLaunch") ||
        name.starts_with("__cudaLaunch") || name.starts_with("cudaGetParameterBuffer"))
        return "starts kernels itself (" + name + ")";
    if (!function->getQualifiedNameAsString().starts_with("cooperative_groups::")) return "";
    std::string group;
    if (const auto* method = dyn_cast<CXXMethodDecl>(function))
        group = method->getParent()->getNameAsString();
    if (name == "this_grid" || name == "this_multi_grid" || group == "grid_group" ||
        group == "multi_grid_group")
        return "works with the whole grid at once (cooperative_groups::this_grid)";
    if (name == "this_cluster" || group == "cluster_group")
        return "works with thread-block clusters (cooperative_groups::this_cluster)";
    return "";
}

// A function that is only declared: the toolkit's own are known, as are names that only compilers may use.
std::string refuse_unseen(const FunctionDecl* function) {
    if (function->getBuiltinID() || in_system(function) || plain_name(function).starts_with("__")) return "";
    if (function->isDefaulted() || function->isDeleted() || function->isPureVirtual() ||
        function->isImplicit())
        return "";
    if (function->isConstexpr() || isa<CXXDeductionGuideDecl>(function)) return "";
    return "calls " + function->getQualifiedNameAsString() + ", whose text is not here";
}

// A kernel has this much shared memory, not counting what its launch asks for; the loop needs some of it.
constexpr uint64_t kSharedRoom = 48 * 1024, kLoopBytes = 128 + 24, kPadding = 16;

std::string refuse_shared_size(const Managed& managed) {
    uint64_t bytes = 0;
    for (const Function* function : managed.functions)
        for (const auto& [place, size] : function->shared)
            bytes += (size + kPadding - 1) / kPadding * kPadding;
    if (bytes + kLoopBytes <= kSharedRoom) return "";
    return "has " + std::to_string(bytes) + " bytes of shared memory, which leaves no room for " +
           std::to_string(kLoopBytes);
}

// What assembly does is not looked into.
bool shares_memory(const Managed& managed) {
    return std::any_of(managed.functions.begin(), managed.functions.end(), [](const Function* function) {
        return function->shares || !function->assembly.empty();
    });
}

class Judge {
public:
    Judge(const Program& program, const Text& text) : program_(program), text_(text) {}

    // Why this kernel cannot be managed; empty: it can, and `managed` says how.
    std::string examine(const KernelFacts& kernel, Managed& managed) {
        std::string reason = refuse_entry(kernel, text_);
        if (!reason.empty()) return reason;
        managed.facts = &kernel;
        bool sm = false, sms = false;
        for (const FunctionDecl* key : program_.reach(kernel.function->definition->getCanonicalDecl())) {
            reason = refuse_by_name(key);
            if (!reason.empty()) return reason;
            const Function* function = program_.find(key);
            if (!function) {
                reason = refuse_unseen(key);
                if (!reason.empty()) return reason;
                continue;
            }
            reason = examine_function(kernel, *function, managed, sm, sms);
            if (!reason.empty()) return reason;
            managed.functions.push_back(function);
        }
        if (sm && sms) return "chooses its work by the number of its SM (%smid and %nsmid)";
        managed.shared = shares_index(managed);
        managed.apart = program_.shares || managed.copies || shares_memory(managed);
        if (std::string full = refuse_shared_size(managed); !full.empty()) return full;
        managed.reuse = reuse_after_returns(program_, *kernel.function, text_);
        return managed.reuse == Reuse::kNever ? refuse_early_returns(*kernel.function, text_) : "";
    }

private:
    std::string examine_function(const KernelFacts& kernel, const Function& function, Managed& managed,
                                 bool& sm, bool& sms) {
        const bool own = &function == kernel.function;
        const std::string where = own ? "" : " (in " + name_of(function) + ")";
        if (function.broken && !in_system(function.definition))
            return "Clang does not understand all of " + name_of(function);
        if (function.launches && !in_system(function.definition)) return "starts kernels itself" + where;
        if (!own && function.definition->hasAttr<CUDAGlobalAttr>())
            return "names another kernel, or itself" + where;
        for (const GCCAsmStmt* statement : function.assembly) {
            const AsmFacts facts = examine_asm(statement->getAsmString());
            if (!facts.refusal.empty()) return facts.refusal + where;
            sm |= facts.sm;
            sms |= facts.sms;
            managed.copies |= facts.copies;
        }
        return refuse_reads(function, text_);
    }

    const Program& program_;
    const Text& text_;
};

// Functions whose text changes serve every kernel that calls them: if one of these is not managed, the others
// cannot be. Says whether something was refused.
bool refuse_neighbours(const Program& program, Verdict& verdict) {
    for (const KernelFacts& kernel : program.kernels) {
        auto is_this = [&](const Managed& managed) { return managed.facts == &kernel; };
        if (std::any_of(verdict.managed.begin(), verdict.managed.end(), is_this)) continue;
        for (const FunctionDecl* key : program.reach(kernel.function->definition->getCanonicalDecl())) {
            const Function* function = program.find(key);
            if (!function) continue;
            auto changes = [&](const Managed& managed) {
                return managed.facts->function != function && reads_shared_index(*function) &&
                       std::count(managed.functions.begin(), managed.functions.end(), function) > 0;
            };
            auto found = std::find_if(verdict.managed.begin(), verdict.managed.end(), changes);
            if (found == verdict.managed.end()) continue;
            verdict.refused[found->facts->function] = "shares " + name_of(*function) +
                                                      ", which reads blockIdx, with " +
                                                      name_of(*kernel.function) + ", which stays as it is";
            verdict.managed.erase(found);
            return true;
        }
    }
    return false;
}

// A specialisation stands on its template's managed form.
const KernelFacts* general_form(const Program& program, const KernelFacts& kernel) {
    const FunctionTemplateDecl* general = kernel.function->definition->getPrimaryTemplate();
    if (!general) return nullptr;
    for (const KernelFacts& other : program.kernels)
        if (other.function->definition->getDescribedFunctionTemplate() &&
            other.function->definition->getCanonicalDecl() == general->getTemplatedDecl()->getCanonicalDecl())
            return &other;
    return nullptr;
}

bool is_wanted(const Program& program, const KernelFacts& kernel) {
    auto stands_on = [&](const KernelFacts& other) { return general_form(program, other) == &kernel; };
    return !kernel.instances.empty() ||
           std::any_of(program.kernels.begin(), program.kernels.end(), stands_on);
}

// Says whether something was refused.
bool refuse_specialisations(const Program& program, Verdict& verdict) {
    auto without_template = [&](const Managed& managed) {
        const KernelFacts* general = general_form(program, *managed.facts);
        return general && verdict.refused.count(general->function);
    };
    auto found = std::find_if(verdict.managed.begin(), verdict.managed.end(), without_template);
    if (found == verdict.managed.end()) return false;
    verdict.refused[found->facts->function] = "specialises a template that stays as it is";
    verdict.managed.erase(found);
    return true;
}

// smt_body_blur; overloads and specialisations get a number.
void name_bodies(Verdict& verdict) {
    std::map<std::string, int> seen;
    for (Managed& managed : verdict.managed) {
        managed.body = "smt_body_" + managed.facts->function->definition->getNameAsString();
        const int number = ++seen[managed.body];
        if (number > 1) managed.body += "_" + std::to_string(number);
    }
    for (Managed& managed : verdict.managed)
        managed.overloaded = seen["smt_body_" + managed.facts->function->definition->getNameAsString()] > 1;
}

}  // namespace

Verdict judge(const Program& program, const Text& text, const Reasons& banned) {
    Verdict verdict;
    Judge judge(program, text);
    for (const KernelFacts& kernel : program.kernels) {
        if (!is_wanted(program, kernel)) continue;
        Managed managed;
        auto ban = banned.find(kernel.function);
        const std::string reason = ban != banned.end() ? ban->second : judge.examine(kernel, managed);
        if (reason.empty())
            verdict.managed.push_back(std::move(managed));
        else
            verdict.refused[kernel.function] = reason;
    }
    while (refuse_neighbours(program, verdict) || refuse_specialisations(program, verdict)) {
    }
    name_bodies(verdict);
    return verdict;
}

}  // namespace smt::rewriter::source
