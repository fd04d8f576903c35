// A kernel's definition becomes three functions: its body, the managed kernel, and the kernel itself.
//
//     template <class T> __global__ void k(T* a, int n = 1) { BODY }
//
//     template <class T> __device__ __forceinline__ void smt_body_k(const uint3 blockIdx, const dim3 gridDim,
//                                                  const ::smt::Launch& smt_launch, T* a, int n) { BODY }
//     template <class T> __global__ void smt_k(T* a, int n, ::smt::Launch smt_launch) {
//         ::smt::Worker smt_worker(smt_launch);
//         while (smt_worker.next()) smt_body_k<T>(smt_worker.block(), smt_worker.grid(), smt_launch, a, n);
//     }
//     template <class T> __global__ void k(T* a, int n = 1) {
//         (void)&smt_k<T>;
//         smt_body_k<T>(blockIdx, gridDim, ::smt::Launch{}, a, n);
//     }
//
// The text is copied, not printed from the tree, so attributes, macros and comments stay. Naming the managed
// form in a template makes a compiler instantiate it wherever it instantiates the kernel, and keeps one with
// internal linkage from being thrown away. Line numbers of everything else stay, by #line.
#include <clang/AST/Attr.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/TypeLoc.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "rewriter/device/managed_names.h"
#include "rewriter/device/smt_worker.h"
#include "rewriter/source/entry.h"
#include "rewriter/source/rules.h"

namespace smt::rewriter::source {

using namespace clang;

namespace {

std::string refuse_place(SourceLocation place, const char* what, const Text& text) {
    if (!text.here(place))
        return "is defined in " + text.file(place) + ", and only the text itself is rewritten";
    if (!text.spelled(place)) return fmt::format("its {} comes out of the macro {}", what, text.macro(place));
    return "";
}

bool takes_launch(const FunctionDecl* kernel) {
    if (kernel->getNumParams() == 0) return false;
    const auto* record = kernel->getParamDecl(kernel->getNumParams() - 1)->getType()->getAsCXXRecordDecl();
    return record && record->getQualifiedNameAsString() == "smt::Launch";
}

// All parameters of a kernel have this much room, from sm_70 on.
constexpr uint64_t kParameterRoom = 32764, kLaunchBytes = sizeof(smt::Launch);

std::string refuse_size(const FunctionDecl* instance) {
    const ASTContext& context = instance->getASTContext();
    uint64_t bytes = 0;
    auto add = [&](uint64_t size, uint64_t alignment) {
        bytes = (bytes + alignment - 1) / alignment * alignment + size;
    };
    for (const ParmVarDecl* parameter : instance->parameters()) {
        const QualType type = parameter->getType().getNonReferenceType();
        if (type->isIncompleteType() || type->isDependentType()) return "";
        add(static_cast<uint64_t>(context.getTypeSizeInChars(type).getQuantity()),
            static_cast<uint64_t>(context.getTypeAlignInChars(type).getQuantity()));
    }
    add(kLaunchBytes, 8);
    if (bytes <= kParameterRoom) return "";
    return fmt::format("has parameters of {} bytes, which leaves no room for one of {}", bytes - kLaunchBytes,
                       kLaunchBytes);
}

// The kernel's own names that would hide, or stand beside, those of its persistent form.
std::string refuse_names(const FunctionDecl* definition, const CompoundStmt* body) {
    static const std::set<llvm::StringRef> kBodys = {"blockIdx", "gridDim", "smt_launch"},
                                           kEntrys = {"smt_worker", "smt_original"};
    for (const ParmVarDecl* parameter : definition->parameters())
        if (kBodys.count(parameter->getName()) || kEntrys.count(parameter->getName()))
            return fmt::format("has a parameter named {}, a name that its persistent form needs",
                               std::string_view(parameter->getName()));
    for (const Stmt* statement : body->body()) {
        const auto* declarations = dyn_cast<DeclStmt>(statement);
        if (!declarations) continue;
        for (const Decl* each : declarations->decls()) {
            const auto* named = dyn_cast<NamedDecl>(each);
            if (named && named->getDeclName().isIdentifier() && kBodys.count(named->getName()))
                return fmt::format("has a variable named {}, a name that its persistent form needs",
                                   std::string_view(named->getName()));
        }
    }
    return "";
}

unsigned lines_in(const std::string& text) {
    return static_cast<unsigned>(std::count(text.begin(), text.end(), '\n'));
}

// The body's head in place of the kernel's, on as many lines.
std::string body_head(const Managed& managed, const Entry& entry, const Text& text) {
    const std::string parameters = entry.parameters(Parameters::kBody);
    std::string head =
        entry.template_head() +
        fmt::format(
            "__device__ __forceinline__ void {}{}(const uint3 blockIdx, const dim3 gridDim, "
            "const ::smt::Launch& smt_launch{}{}){}",
            entry.qualifier(), managed.body, parameters.empty() ? "" : ", ", parameters, entry.tail());
    const unsigned before = lines_in(text.piece(entry.begin, entry.open)), after = lines_in(head);
    if (after < before) return head + std::string(before - after, '\n');
    if (after > before) return head + fmt::format("\n#line {}\n", text.line(entry.open));
    return head;
}

// Whether its blocks have no more threads than a warp, as far as the text says it.
bool is_one_warp(const Managed& managed) {
    const FunctionDecl* definition = managed.facts->function->definition;
    const auto* bounds = definition->getAttr<CUDALaunchBoundsAttr>();
    const Expr* most = bounds ? bounds->getMaxThreads() : nullptr;
    Expr::EvalResult threads;
    return most && !most->isValueDependent() && most->EvaluateAsInt(threads, definition->getASTContext()) &&
           threads.Val.getInt().getZExtValue() <= 32;
}

const char* worker_of(const Managed& managed) {
    if (managed.reuse == Reuse::kNever) return managed.shared ? "SharedSingleWorker" : "SingleWorker";
    if (managed.shared) return "SharedWorker";
    return is_one_warp(managed) ? "WarpWorker" : managed.apart ? "Worker" : "FreeWorker";
}

std::string managed_kernel(const Managed& managed, const Entry& entry) {
    const std::string parameters = entry.parameters(Parameters::kManaged);
    const std::string call = fmt::format("{}{}(smt_worker.block(), smt_worker.grid(), smt_launch{});",
                                         managed.body, entry.template_arguments(), entry.arguments());
    return entry.head(managed_name(entry.name(), managed.reuse)) +
           fmt::format(
               "({}{}::smt::Launch smt_launch){}{{\n"
               "    ::smt::{} smt_worker(smt_launch);\n"
               "    while (smt_worker.next()) {}\n"
               "}}\n",
               parameters, parameters.empty() ? "" : ", ", entry.tail(), worker_of(managed),
               managed.copies ? "{ " + call + " ::smt::await_copies(); }" : call);
}

std::string own_kernel(const Managed& managed, const Entry& entry) {
    std::string keep;
    if (entry.is_template() || entry.is_internal()) {
        const std::string name = "&" + managed_name(entry.name(), managed.reuse) + entry.template_arguments();
        const std::string parameters = entry.parameters(Parameters::kManaged);
        keep = managed.overloaded || entry.has_pack()
                   ? fmt::format("    (void)static_cast<void (*)({}{}::smt::Launch)>({});\n", parameters,
                                 parameters.empty() ? "" : ", ", name)
                   : fmt::format("    (void){};\n", name);
    }
    return entry.head(entry.name()) +
           fmt::format("({}){}{{\n{}{}    {}{}(blockIdx, gridDim, ::smt::Launch{{}}{});\n}}\n",
                       entry.parameters(Parameters::kOwn), entry.tail(), keep,
                       managed.shared ? "    ::smt::Original smt_original;\n" : "", managed.body,
                       entry.template_arguments(), entry.arguments());
}

}  // namespace

std::string refuse_entry(const KernelFacts& kernel, const Text& text) {
    const FunctionDecl* definition = kernel.function->definition;
    std::string reason = refuse_place(definition->getLocation(), "name", text);
    if (!reason.empty()) return reason;
    const auto* body = dyn_cast_or_null<CompoundStmt>(definition->getBody());
    if (!body) return "its body is a try block";
    reason = refuse_place(body->getLBracLoc(), "body", text);
    if (reason.empty()) reason = refuse_place(body->getRBracLoc(), "body's end", text);
    const FunctionTypeLoc type = definition->getFunctionTypeLoc();
    if (reason.empty() && !type) reason = "is declared through a typedef";
    if (reason.empty()) reason = refuse_place(type.getLParenLoc(), "parameter list", text);
    if (reason.empty()) reason = refuse_place(type.getRParenLoc(), "parameter list", text);
    if (!reason.empty()) return reason;
    if (definition->getLexicalDeclContext()->isRecord()) return "is defined inside a class";
    if (takes_launch(definition)) return "is in persistent form already";
    if (reason = refuse_names(definition, body); !reason.empty()) return reason;
    for (const FunctionDecl* instance : kernel.instances)
        if (std::string large = refuse_size(instance); !large.empty()) return large;
    for (const FunctionDecl* declaration : definition->redecls())
        if (declaration->hasAttr<CUDAClusterDimsAttr>())
            return "is launched in thread-block clusters (__cluster_dims__)";
    return "";
}

void edit_entry(const Managed& managed, const Text& text, Edits& edits) {
    const Entry entry(managed.facts->function->definition, text);
    edits.replace(entry.begin, entry.open, body_head(managed, entry, text));
    // What follows on the line of the closing brace keeps its line number.
    unsigned after = entry.close + 1;
    const std::string& all = text.all();
    const unsigned end = static_cast<unsigned>(std::min(all.find('\n', after), all.size()));
    int line = text.line(entry.close);
    std::string gap = "\n";
    if (all.find_first_not_of(" \t\r", after) >= end && end < all.size()) {
        after = end + 1;
        line += 1;
        gap = "";
    }
    edits.insert(after, gap + managed_kernel(managed, entry) + own_kernel(managed, entry) +
                            fmt::format("#line {}\n", line));
}

}  // namespace smt::rewriter::source
