// The declarations of a translation unit outside of classes and functions, each with its tokens.
#include "rewriter/source/extract/groups.h"

#include <clang/AST/DeclTemplate.h>
#include <clang/Basic/SourceManager.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace smt::rewriter::source {

using namespace clang;

namespace {

constexpr std::array kSystemFolders = {"/usr/include/", "/usr/lib/", "/usr/local/include/"};
constexpr std::array kLibraryFolders = {"/cub/",        "/thrust/",  "/cuda/std/",
                                        "/libcudacxx/", "/cutlass/", "/cute/"};
constexpr const char* kVirtual = "/smt.rewriter/";

bool opens_block(const DeclContext* context) {
    if (isa<TranslationUnitDecl, NamespaceDecl>(context)) return true;
    const auto* linkage = dyn_cast<LinkageSpecDecl>(context);
    return linkage && linkage->hasBraces();
}

std::string canonical(const std::string& path) {
    std::error_code error;
    const std::string found = std::filesystem::weakly_canonical(path, error).string();
    return error ? path : found;
}

SourceRange range_of(const Decl* declaration) { return declaration->getSourceRange(); }

const Decl* pattern_of(const Decl* declaration) {
    const auto* pattern = dyn_cast<TemplateDecl>(declaration);
    return pattern ? pattern->getTemplatedDecl() : nullptr;
}

// What stands in "extern "C" f();" has its text.
const Decl* inner_of(const Decl* declaration) {
    const auto* linkage = dyn_cast<LinkageSpecDecl>(declaration);
    return linkage && !linkage->hasBraces() && !linkage->decls_empty() ? *linkage->decls_begin() : nullptr;
}

}  // namespace

Groups::Groups(const ASTContext& context, const Tokens& tokens, const std::string& toolkit)
    : context_(context),
      sources_(context.getSourceManager()),
      tokens_(tokens),
      toolkit_(canonical(toolkit) + "/") {}

Origin Groups::origin(SourceLocation place) {
    if (place.isInvalid()) return Origin::kCompiler;
    const FileID file = sources_.getFileID(sources_.getExpansionLoc(place));
    auto [found, fresh] = origins_.try_emplace(file, Origin::kCompiler);
    if (fresh) found->second = origin_of_file(file);
    return found->second;
}

Origin Groups::origin_of_file(FileID file) {
    const std::string name = sources_.getFilename(sources_.getLocForStartOfFile(file)).str();
    if (name.empty()) return Origin::kCompiler;
    if (name.starts_with(kVirtual))
        return name.find("/clang/") != name.npos ? Origin::kSystem
               : name.ends_with("/prelude.h")    ? Origin::kCompiler
                                                 : Origin::kProgram;
    const std::string path = canonical(name);
    if (path.starts_with(toolkit_)) return Origin::kLibrary;
    for (const char* folder : kSystemFolders)
        if (path.starts_with(folder)) return Origin::kSystem;
    for (const char* folder : kLibraryFolders)
        if (path.find(folder) != path.npos) return Origin::kLibrary;
    return Origin::kProgram;
}

// By the program itself, as near as can be: what a library's header includes may be another in NVRTC.
const Tokens::Include* Groups::include_of(SourceLocation place) {
    SourceLocation at = sources_.getExpansionLoc(place);
    for (SourceLocation from = at; from.isValid(); from = sources_.getIncludeLoc(sources_.getFileID(from)))
        if (origin(from) == Origin::kCompiler) return nullptr;
    while (at.isValid()) {
        const FileID file = sources_.getFileID(at);
        const auto [first, last] = tokens_.includes().equal_range(sources_.getFilename(at).str());
        for (auto include = first; include != last; ++include)
            if (origin(include->second.where) == Origin::kProgram) return &include->second;
        at = sources_.getIncludeLoc(file);
    }
    return nullptr;
}

const std::map<const Decl*, const Group*>& Groups::block(const DeclContext* context) {
    if (!blocks_.count(context)) {
        std::vector<const Decl*> around;
        for (const DeclContext* outer = context; !outer->isTranslationUnit();
             outer = outer->getLexicalParent())
            around.insert(around.begin(), Decl::castFromDeclContext(outer));
        add(context, std::move(around));
    }
    return blocks_[context];
}

void Groups::add(const DeclContext* context, std::vector<const Decl*> around) {
    std::vector<std::pair<Span, const Decl*>> found;
    for (const Decl* declaration : context->decls()) {
        if (declaration->isImplicit() || origin(declaration->getLocation()) != Origin::kProgram) continue;
        const auto* inner = dyn_cast<DeclContext>(declaration);
        if (inner && opens_block(inner)) continue;
        const Span span = tokens_.around(range_of(declaration));
        if (span.begin != span.end) found.emplace_back(span, declaration);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
    auto& groups = blocks_[context];
    Group* open = nullptr;
    for (const auto& [span, declaration] : found) {
        if (!open || span.begin >= open->span.end) {
            all_.push_back(std::make_unique<Group>(Group{span, {}, around}));
            open = all_.back().get();
        }
        open->span.end = std::max(open->span.end, span.end);
        open->declarations.push_back(declaration);
        groups[declaration] = open;
        if (const Decl* pattern = pattern_of(declaration)) groups[pattern] = open;
        if (const Decl* inner = inner_of(declaration)) {
            groups[inner] = open;
            if (const Decl* pattern = pattern_of(inner)) groups[pattern] = open;
        }
    }
}

const Group* Groups::find(const Decl* declaration) {
    const Decl* at = declaration;
    while (true) {
        const DeclContext* context = at->getLexicalDeclContext();
        if (!context || isa<FunctionDecl>(context)) return nullptr;
        if (opens_block(context)) {
            const auto& groups = block(context);
            auto found = groups.find(at);
            return found == groups.end() ? nullptr : found->second;
        }
        at = Decl::castFromDeclContext(context);
        // A class's own declaration is in the block under its template.
    }
}

}  // namespace smt::rewriter::source
