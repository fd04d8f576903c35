// Writes what was found to be needed, in the order of the program, inside of its namespaces.
#include "rewriter/source/extract/writer.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclFriend.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/TypeLoc.h>
#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <filesystem>

namespace smt::rewriter::source {

using namespace clang;

namespace {

const CXXRecordDecl* record_in(const Decl* declaration) {
    if (const auto* pattern = dyn_cast<ClassTemplateDecl>(declaration)) return pattern->getTemplatedDecl();
    return dyn_cast<CXXRecordDecl>(declaration);
}

std::string alignment_of(const Group& group) {
    for (const Decl* declaration : group.declarations) {
        const CXXRecordDecl* record = record_in(declaration);
        if (const auto* packed = record ? record->getAttr<MaxFieldAlignmentAttr>() : nullptr)
            return std::to_string(packed->getAlignment() / 8);
    }
    return "";
}

std::string closing(const std::string& opened) {
    if (!opened.starts_with("namespace _GLOBAL__N_")) return "}\n";
    const std::string name = opened.substr(10, opened.find(' ', 10) - 10);
    return "}\nusing namespace " + name + ";\n";
}

}  // namespace

std::string Writer::name_of(const NamespaceDecl* space) const {
    return space->isAnonymousNamespace() ? names.unnamed : space->getNameAsString();
}

Writer::Path Writer::path_of(const Group& group) const {
    Path path;
    for (const Decl* outer : group.around) {
        const auto* space = dyn_cast<NamespaceDecl>(outer);
        if (!space) {
            path.push_back(cast<LinkageSpecDecl>(outer)->getLanguage() == LinkageSpecLanguageIDs::C
                               ? "extern \"C\" {"
                               : "extern \"C++\" {");
        } else {
            const std::string name = name_of(space);
            path.push_back(fmt::format("{}namespace {}{{", space->isInline() ? "inline " : "",
                                       name.empty() ? "" : name + " "));
        }
    }
    return path;
}

Writer::Path Writer::inside_internal(const Path& path) const {
    Path inside = {"namespace " + names.internal + " {"};
    for (std::string part : path) {
        if (part.starts_with("inline ")) part.erase(0, 7);
        inside.push_back(part);
    }
    return inside;
}

std::string Writer::write_path(const Path& from, const Path& to) const {
    size_t same = 0;
    while (same < from.size() && same < to.size() && from[same] == to[same]) ++same;
    std::string text;
    for (size_t at = from.size(); at > same; --at) text += closing(from[at - 1]);
    for (size_t at = same; at < to.size(); ++at) text += to[at] + "\n";
    return text;
}

// Of "using" in the program what leads to something that is there. It is not known whether any name needs it.
void Writer::add_usings(const DeclContext* context, std::set<const Group*>& all) {
    for (const Decl* declaration : context->decls()) {
        if (const auto* inner = dyn_cast<DeclContext>(declaration);
            inner && isa<NamespaceDecl, LinkageSpecDecl>(declaration)) {
            const auto* space = dyn_cast<NamespaceDecl>(declaration);
            if (!space || needs_.has_part_of(space)) add_usings(inner, all);
            continue;
        }
        bool useful = false;
        if (const auto* directive = dyn_cast<UsingDirectiveDecl>(declaration)) {
            useful = !directive->isImplicit() && needs_.has_part_of(directive->getNominatedNamespace());
        } else if (const auto* alias = dyn_cast<NamespaceAliasDecl>(declaration)) {
            useful = needs_.has_part_of(alias->getNamespace());
        } else if (const auto* names_one = dyn_cast<UsingDecl>(declaration)) {
            for (const UsingShadowDecl* shadow : names_one->shadows()) {
                const NamedDecl* target = shadow->getTargetDecl();
                if (const auto* pattern = dyn_cast<TemplateDecl>(target);
                    pattern && pattern->getTemplatedDecl())
                    target = pattern->getTemplatedDecl();
                useful |= needs_.has(target);
            }
        }
        if (const Group* group = useful ? groups_.find(declaration) : nullptr) all.insert(group);
    }
}

std::string Writer::write() {
    std::set<const Group*> all = needs_.groups();
    add_usings(context_.getTranslationUnitDecl(), all);
    std::vector<const Group*> sorted(all.begin(), all.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const Group* a, const Group* b) { return a->span.begin < b->span.begin; });
    std::vector<std::pair<SourceLocation, std::string>> includes;
    for (const auto& [name, place] : needs_.includes()) includes.emplace_back(place, name);
    const SourceManager& sources = context_.getSourceManager();
    std::sort(includes.begin(), includes.end(), [&](const auto& a, const auto& b) {
        return a.first != b.first && sources.isBeforeInTranslationUnit(a.first, b.first);
    });
    std::string text;
    for (const auto& [place, name] : includes) text += "#include " + name + "\n";
    text += needs_.standard().includes();
    text += needs_.standard().declarations(!text.empty());
    Path open;
    for (const Group* group : sorted) {
        const Path path = path_of(*group);
        const bool apart =
            std::any_of(group->declarations.begin(), group->declarations.end(), [&](const Decl* declaration) {
                return isa<VarDecl>(declaration) && internal.count(cast<VarDecl>(declaration)) != 0;
            });
        const Path own = apart ? inside_internal(path) : path;
        text += write_path(open, own) + write_group(*group);
        open = own;
        if (!apart) continue;
        std::string full = "::" + names.internal;
        for (const Decl* outer : group->around)
            if (const auto* space = dyn_cast<NamespaceDecl>(outer)) full += "::" + name_of(space);
        text += write_path(open, path) + "using namespace " + full + ";\n";
        open = path;
    }
    text += write_path(open, {});
    for (const FunctionDecl* kernel : instances) text += instantiation(kernel);
    return builtin_stand_ins(text) + text;
}

// Past the type where nothing is left of the variables declared with it; otherwise past everything.
unsigned Writer::end_of_type(const Group& group) const {
    unsigned end = 0;
    for (const Decl* declaration : group.declarations) {
        if (!isa<TagDecl, VarDecl>(declaration) || (isa<VarDecl>(declaration) && needs_.has(declaration)))
            return group.span.end;
        if (isa<TagDecl>(declaration)) end = tokens_.find(declaration->getEndLoc(), group.span.end) + 1;
    }
    return end == 0 || group.declarations.size() == 1 ? group.span.end : end;
}

std::string Writer::write_group(const Group& group) {
    std::vector<Tokens::Change> changes;
    for (const Decl* declaration : group.declarations) {
        if (const CXXRecordDecl* record = record_in(declaration);
            record && record->isThisDeclarationADefinition())
            trim(record, changes);
        if (const auto* variable = dyn_cast<VarDecl>(declaration);
            variable && internal.count(variable) != 0) {
            for (unsigned at = group.span.begin; at < group.span.end; ++at)
                if (tokens_.at(at).kind == tok::kw_static) changes.push_back({{at, at + 1}, ""});
        }
    }
    if (const unsigned cut = end_of_type(group); cut < group.span.end)
        changes.push_back({{cut, group.span.end}, ";"});
    std::map<unsigned, std::string> ahead;
    for (const auto& [place, hint] : needs_.loop_hints())
        if (const unsigned at = tokens_.find(place, group.span.end); group.span.contains(at))
            ahead[at] = hint;
    const std::string packed = alignment_of(group);
    std::string text = packed.empty() ? "" : "#pragma pack(push, " + packed + ")\n";
    text += tokens_.line_directive(group.span.begin, main_path(input_), input_.name);
    text += tokens_.write(group.span, std::move(changes), ahead) + "\n";
    return packed.empty() ? text : text + "#pragma pack(pop)\n";
}

// Leaves out of a class what is not needed of its functions.
void Writer::trim(const CXXRecordDecl* record, std::vector<Tokens::Change>& changes) const {
    for (const Decl* part : record->decls()) {
        if (part->isImplicit()) continue;
        const Decl* named = part;
        if (const auto* friends = dyn_cast<FriendDecl>(part)) named = friends->getFriendDecl();
        if (const auto* pattern = dyn_cast_or_null<FunctionTemplateDecl>(named))
            named = pattern->getTemplatedDecl();
        if (const auto* function = dyn_cast_or_null<FunctionDecl>(named))
            trim(part, function, changes);
        else if (const CXXRecordDecl* inner = record_in(part); inner && inner->isThisDeclarationADefinition())
            trim(inner, changes);
    }
}

void Writer::trim(const Decl* part, const FunctionDecl* function,
                  std::vector<Tokens::Change>& changes) const {
    const Keep keep = needs_.keep(function);
    if (keep == Keep::kAll) return;
    const Span span = tokens_.around(part->getSourceRange());
    if (span.begin == span.end) return;
    if (keep == Keep::kNothing) return changes.push_back({span, ""});
    for (unsigned at = span.begin; at < span.end; ++at)
        if (const auto* host = function->getAttr<CUDAHostAttr>();
            host && tokens_.find(host->getLocation(), span.end) == at)
            for (unsigned word = at - 3; word <= at + 2; ++word) changes.push_back({{word, word + 1}, ""});
    if (!function->doesThisDeclarationHaveABody()) return;
    const FunctionTypeLoc type = function->getFunctionTypeLoc();
    unsigned end = tokens_.find(type ? type.getRParenLoc() : function->getLocation(), span.begin);
    auto also = [&](SourceRange range) { end = std::max(end, tokens_.find(range.getEnd(), end)); };
    also(function->getExceptionSpecSourceRange());
    while (end + 1 < span.end && tokens_.at(end + 1).kind != tok::l_brace &&
           tokens_.at(end + 1).kind != tok::colon && tokens_.at(end + 1).kind != tok::kw_try)
        ++end;
    changes.push_back({{end + 1, span.end}, ";"});
}

// template __global__ void a::blur<float>(float*, int);
std::string Writer::instantiation(const FunctionDecl* kernel) const {
    PrintingPolicy policy = context_.getPrintingPolicy();
    policy.SuppressUnwrittenScope = true;
    policy.AnonymousTagLocations = false;
    std::string text;
    llvm::raw_string_ostream out(text);
    out << "template __global__ void ";
    std::string qualifier;
    for (const DeclContext* outer = kernel->getDeclContext(); outer; outer = outer->getParent())
        if (const auto* space = dyn_cast<NamespaceDecl>(outer)) qualifier = name_of(space) + "::" + qualifier;
    out << qualifier << kernel->getNameAsString();
    printTemplateArgumentList(out, kernel->getTemplateSpecializationArgs()->asArray(), policy);
    out << "(";
    for (unsigned i = 0; i < kernel->getNumParams(); ++i) {
        const ParmVarDecl* parameter = kernel->getParamDecl(i);
        out << (i ? ", " : "")
            << (parameter->hasAttr<CUDAGridConstantAttr>() ? "const __grid_constant__ " : "")
            << parameter->getType().getCanonicalType().getUnqualifiedType().getAsString(policy);
    }
    out << ");\n";
    return text;
}

}  // namespace smt::rewriter::source
