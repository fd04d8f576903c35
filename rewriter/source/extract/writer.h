// Writes what was found to be needed, in the order of the program, inside of its namespaces.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rewriter/source/extract/groups.h"
#include "rewriter/source/extract/names.h"
#include "rewriter/source/extract/needs.h"
#include "rewriter/source/extract/tokens.h"
#include "rewriter/source/rewrite.h"

namespace smt::rewriter::source {

class Writer {
public:
    Writer(const clang::ASTContext& context, const Tokens& tokens, Groups& groups, Needs& needs,
           const Input& input)
        : context_(context), tokens_(tokens), groups_(groups), needs_(needs), input_(input) {}

    FileNames names;
    std::vector<const clang::FunctionDecl*> instances;  // of kernel templates
    std::set<const clang::VarDecl*> internal;           // variables that stand inside of names.internal

    std::string write();

private:
    using Path = std::vector<std::string>;  // what is opened, the outermost first: "namespace a {"

    void add_usings(const clang::DeclContext* context, std::set<const Group*>& all);
    std::string write_group(const Group& group);
    unsigned end_of_type(const Group& group) const;
    std::string write_path(const Path& from, const Path& to) const;
    Path path_of(const Group& group) const;
    Path inside_internal(const Path& path) const;
    std::string name_of(const clang::NamespaceDecl* space) const;
    void trim(const clang::CXXRecordDecl* record, std::vector<Tokens::Change>& changes) const;
    void trim(const clang::Decl* part, const clang::FunctionDecl* function,
              std::vector<Tokens::Change>& changes) const;
    std::string instantiation(const clang::FunctionDecl* kernel) const;

    const clang::ASTContext& context_;
    const Tokens& tokens_;
    Groups& groups_;
    Needs& needs_;
    const Input& input_;
};

}  // namespace smt::rewriter::source
