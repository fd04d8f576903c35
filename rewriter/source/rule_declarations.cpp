// Declarations of a kernel ahead of its definition, and in classes as a friend, get the same for the managed
// form; a friend, and a kernel that is defined outside of its namespace, also for its body.
//
//     __global__ void k(int* a);   ->   __global__ void k(int* a); __global__ void smt_k(int* a,
//     ::smt::Launch smt_launch);
#include <clang/AST/Attr.h>
#include <clang/AST/DeclFriend.h>
#include <clang/AST/DeclTemplate.h>
#include <fmt/format.h>

#include "rewriter/device/managed_names.h"
#include "rewriter/source/entry.h"
#include "rewriter/source/rules.h"

namespace smt::rewriter::source {

using namespace clang;

namespace {

// A friend that is a template is spelled with the word in the midst of it; its head is copied with it.
std::string body_declaration(const Managed& managed, const Entry& entry, bool is_friend) {
    const std::string parameters = entry.parameters(Parameters::kBody);
    return fmt::format(
        " {}{}__device__ __forceinline__ void {}(const uint3 blockIdx, const dim3 gridDim, "
        "const ::smt::Launch& smt_launch{}{}){};",
        entry.template_head(), is_friend ? "friend " : "", managed.body, parameters.empty() ? "" : ", ",
        parameters, entry.tail());
}

std::string managed_declaration(const Managed& managed, const Entry& entry) {
    const std::string parameters = entry.parameters(Parameters::kManaged);
    return fmt::format(" {}({}{}::smt::Launch smt_launch){};",
                       entry.head(managed_name(entry.name(), managed.reuse)), parameters,
                       parameters.empty() ? "" : ", ", entry.tail());
}

bool is_spelled(const FunctionDecl* declaration, const Text& text) {
    const FunctionTypeLoc type = declaration->getFunctionTypeLoc();
    return type && text.spelled(declaration->getLocation()) && text.spelled(type.getLParenLoc()) &&
           text.spelled(type.getRParenLoc());
}

}  // namespace

void edit_declarations(const Managed& managed, const Text& text, Edits& edits) {
    const FunctionDecl* definition = managed.facts->function->definition;
    const bool qualified = Entry(definition, text).is_qualified();
    // A specialisation needs its template's managed form declared, also where nothing more is said of the
    // template.
    const FunctionDecl* general =
        definition->getPrimaryTemplate() ? definition->getPrimaryTemplate()->getTemplatedDecl() : nullptr;
    if (general)
        for (const FunctionDecl* declaration : general->redecls())
            if (!declaration->doesThisDeclarationHaveABody() && is_spelled(declaration, text)) {
                const Entry entry(declaration, text);
                edits.insert(entry.close + 1, managed_declaration(managed, entry));
            }
    for (const FunctionDecl* declaration : definition->redecls()) {
        // The tree also has one for each specialisation in a template's place, which says it stands where
        // this does.
        if (declaration->doesThisDeclarationHaveABody() ||
            declaration->getLocation() == definition->getLocation())
            continue;
        if (!is_spelled(declaration, text)) continue;
        const Entry entry(declaration, text);
        const bool is_friend = declaration->getLexicalDeclContext()->isRecord();
        std::string more = managed_declaration(managed, entry);
        if (is_friend || qualified) more += body_declaration(managed, entry, is_friend);
        edits.insert(entry.close + 1, more);
    }
}

}  // namespace smt::rewriter::source
