// What kernels depend on: one walk from declaration to declaration, starting at the kernels.
//
// Templates are walked twice: as they are written, since all names that do not depend on a parameter must be
// declared for them to parse; and as instantiated, since only that shows what the others mean. Of a class its
// fields and types are needed with it, of its functions those that are used; constructors, destructors and
// the like stay, since without them it would be another class, but where only the host has them, without a
// body.
#pragma once

#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rewriter/source/extract/groups.h"
#include "rewriter/source/extract/standard.h"

namespace smt::rewriter::source {

enum class Keep { kAll, kDeclaration, kNothing };

// Said to be so, with __device__, __constant__ or __managed__.
bool is_device_variable(const clang::VarDecl* variable);

class Needs {
public:
    Needs(const clang::ASTContext& context, Groups& groups)
        : context_(context), groups_(groups), standard_(context) {}

    void add(const clang::Decl* declaration) { need(declaration); }
    // Follows everything that was added.
    void close();

    // The program's own text, and what stands in for the host's library.
    const std::set<const Group*>& groups() const { return written_; }
    const Standard& standard() const { return standard_; }
    const std::map<std::string, clang::SourceLocation>& includes() const { return includes_; }
    const std::vector<std::pair<clang::SourceLocation, std::string>>& loop_hints() const {
        return loop_hints_;
    }
    // How much of a function inside a class is written.
    Keep keep(const clang::FunctionDecl* member) const;
    bool has(const clang::Decl* declaration) const {
        return seen_.count(declaration->getCanonicalDecl()) != 0;
    }
    // Something of this namespace is there.
    bool has_part_of(const clang::NamespaceDecl* space) const {
        return spaces_.count(space->getCanonicalDecl()) != 0;
    }
    // What cannot be had; empty: nothing.
    const std::string& problem() const { return problem_; }

private:
    friend class Finder;

    void need(const clang::Decl* declaration);
    void see(const clang::Type* type);
    void member(const clang::FunctionDecl* function);
    void candidates(const clang::OverloadExpr* names);
    void take(const clang::NamedDecl* declaration);
    Origin origin_of(const clang::NamedDecl* declaration, clang::SourceLocation* place);
    void take_instance(const clang::FunctionDecl* function);
    void take_instance(const clang::CXXRecordDecl* record);
    void walk(const clang::Decl* declaration);
    void walk_instance(const clang::Decl* declaration);
    void write(const clang::Decl* declaration);
    bool add_candidates();
    bool comes_along(const Group& group, const clang::Decl* other) const;

    const clang::ASTContext& context_;
    Groups& groups_;
    Standard standard_;
    std::set<const clang::Decl*> seen_;           // canonical
    std::set<clang::DeclarationName> functions_;  // what the program's functions among them are called
    std::set<const clang::Decl*> instances_;      // of templates, walked as they are
    std::set<const clang::NamespaceDecl*> spaces_;
    std::set<const Group*> written_;
    std::deque<const clang::Decl*> open_;  // still to be walked
    std::deque<const clang::Decl*> open_instances_;
    std::map<const void*, std::vector<const clang::NamedDecl*>>
        ambiguous_;  // names that only an instance resolves
    std::map<std::string, clang::SourceLocation> includes_;
    std::vector<std::pair<clang::SourceLocation, std::string>> loop_hints_;
    std::string problem_;
};

}  // namespace smt::rewriter::source
