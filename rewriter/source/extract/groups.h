// The declarations of a translation unit outside of classes and functions, each with its tokens.
//
// Declarations that share tokens ("struct A {} a, *b;") are one group: they are written together or not at
// all.
#pragma once

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rewriter/source/extract/tokens.h"

namespace smt::rewriter::source {

struct Group {
    Span span;
    std::vector<const clang::Decl*> declarations;
    std::vector<const clang::Decl*>
        around;  // namespaces and extern "C" { that it stands in, the outermost first
};

// Where a file comes from.
enum class Origin {
    kCompiler,  // the compiler itself, or what it includes before the first line
    kProgram,
    kLibrary,  // NVRTC can include it: the toolkit's, CCCL, CUTLASS
    kSystem,   // the host's C and C++ library
};

class Groups {
public:
    Groups(const clang::ASTContext& context, const Tokens& tokens, const std::string& toolkit);

    // The group that this declaration stands in, if the program wrote it. Null: it has none.
    const Group* find(const clang::Decl* declaration);
    Origin origin(clang::SourceLocation place);
    // How the program came to include something of a library. Null: it did not, the compiler did.
    const Tokens::Include* include_of(clang::SourceLocation place);
    // All of a namespace's block, a template's pattern too.
    const std::map<const clang::Decl*, const Group*>& block(const clang::DeclContext* context);

private:
    Origin origin_of_file(clang::FileID file);
    void add(const clang::DeclContext* context, std::vector<const clang::Decl*> around);

    const clang::ASTContext& context_;
    const clang::SourceManager& sources_;
    const Tokens& tokens_;
    const std::string toolkit_;
    std::map<clang::FileID, Origin> origins_;
    std::map<const clang::DeclContext*, std::map<const clang::Decl*, const Group*>> blocks_;
    std::vector<std::unique_ptr<Group>> all_;
};

}  // namespace smt::rewriter::source
