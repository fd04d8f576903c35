// The parts of a kernel's declaration, as the text spells them.
#include "rewriter/source/entry.h"

#include <clang/AST/Attr.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/TypeLoc.h>
#include <fmt/format.h>

#include <algorithm>

#include "rewriter/source/edits.h"

namespace smt::rewriter::source {

using namespace clang;

namespace {

// Where the declaration begins, with what the tree keeps elsewhere: attributes and extern "C".
unsigned beginning(const FunctionDecl* declaration, const Text& text) {
    unsigned first = text.used(declaration->getOuterLocStart()).value_or(0);
    auto also = [&](SourceLocation place) { first = std::min(first, text.used(place).value_or(first)); };
    for (const Attr* attribute : declaration->attrs()) {
        if (attribute->isImplicit() || attribute->isInherited()) continue;
        const unsigned before = first;
        also(attribute->getLocation());
        if (first < before && attribute->isStandardAttributeSyntax())
            first = std::min(before, static_cast<unsigned>(text.all().rfind("[[", first)));
    }
    if (const FunctionTemplateDecl* pattern = declaration->getDescribedFunctionTemplate())
        also(pattern->getBeginLoc());
    // The tree does not keep the place of a specialisation's "template <>".
    if (declaration->getTemplateSpecializationKind() == TSK_ExplicitSpecialization)
        first = std::min(first, static_cast<unsigned>(text.all().rfind("template", first)));
    if (const auto* linkage = dyn_cast<LinkageSpecDecl>(declaration->getLexicalDeclContext());
        linkage && !linkage->hasBraces())
        also(linkage->getExternLoc());
    return first;
}

}  // namespace

Entry::Entry(const FunctionDecl* declaration, const Text& text) : declaration_(declaration), text_(text) {
    begin = rest_begin_ = beginning(declaration, text);
    const DeclarationNameInfo& name = declaration->getNameInfo();
    own_name_begin_ = name_begin_ = *text.spelled(name.getLoc());
    name_end_ = text.past(name.getLoc()).value_or(own_name_begin_);
    if (declaration->getQualifierLoc())
        name_begin_ = text.spelled(declaration->getQualifierLoc().getBeginLoc()).value_or(name_begin_);
    const FunctionTypeLoc type = declaration->getFunctionTypeLoc();
    left_ = *text.spelled(type.getLParenLoc());
    right_ = *text.spelled(type.getRParenLoc());
    if (const auto* body = dyn_cast_or_null<CompoundStmt>(
            declaration->doesThisDeclarationHaveABody() ? declaration->getBody() : nullptr)) {
        open = *text.spelled(body->getLBracLoc());
        close = *text.spelled(body->getRBracLoc());
    } else {
        open = close = static_cast<unsigned>(std::min(text.all().find(';', right_), text.all().size()));
    }
    if (const FunctionTemplateDecl* pattern = declaration->getDescribedFunctionTemplate()) {
        const TemplateParameterList* list = pattern->getTemplateParameters();
        SourceLocation last = list->getRAngleLoc();
        if (list->getRequiresClause()) last = list->getRequiresClause()->getEndLoc();
        rest_begin_ = text.past(last).value_or(begin);
        while (rest_begin_ < name_begin_ && std::isspace(static_cast<unsigned char>(text.all()[rest_begin_])))
            ++rest_begin_;
    }
}

std::string Entry::name() const { return declaration_->getNameAsString(); }
bool Entry::is_template() const { return declaration_->getDescribedFunctionTemplate() != nullptr; }
bool Entry::is_internal() const {
    return declaration_->getStorageClass() == SC_Static || declaration_->isInAnonymousNamespace() ||
           declaration_->getCanonicalDecl()->getStorageClass() == SC_Static;
}
bool Entry::has_pack() const {
    return std::any_of(declaration_->param_begin(), declaration_->param_end(),
                       [](const ParmVarDecl* parameter) { return parameter->isParameterPack(); });
}

std::string Entry::template_head() const {
    return is_template()
               ? text_.piece(
                     text_.used(declaration_->getDescribedFunctionTemplate()->getBeginLoc()).value_or(begin),
                     rest_begin_)
               : "";
}

std::string Entry::template_arguments() const {
    if (!is_template()) return "";
    std::string list;
    for (const NamedDecl* parameter :
         *declaration_->getDescribedFunctionTemplate()->getTemplateParameters()) {
        if (parameter->getDeclName().isEmpty()) break;  // it has a default
        list += (list.empty() ? "<" : ", ") + parameter->getNameAsString() +
                (parameter->isParameterPack() ? "..." : "");
    }
    return list.empty() ? "" : list + ">";
}

std::string Entry::head(const std::string& name) const {
    return text_.piece(begin, own_name_begin_) + name + text_.piece(name_end_, left_);
}

std::string Entry::parameter_name(unsigned index) const {
    const ParmVarDecl* parameter = declaration_->getParamDecl(index);
    return parameter->getDeclName().isEmpty() ? fmt::format("smt_argument_{}", index)
                                              : parameter->getNameAsString();
}

std::string Entry::parameters(Parameters form) const {
    if (declaration_->getNumParams() == 0) return "";
    Edits edits;
    auto cut = [&](unsigned from, unsigned to) { edits.replace(from - left_ - 1, to - left_ - 1, ""); };
    for (unsigned i = 0; i < declaration_->getNumParams(); ++i) {
        const ParmVarDecl* parameter = declaration_->getParamDecl(i);
        const unsigned first = text_.used(parameter->getBeginLoc()).value_or(left_ + 1);
        unsigned end = text_.past(parameter->getEndLoc()).value_or(right_);
        if (parameter->hasDefaultArg()) {
            const SourceRange value = parameter->getDefaultArgRange();
            const unsigned sign =
                static_cast<unsigned>(text_.all().rfind('=', text_.used(value.getBegin()).value_or(right_)));
            end = sign;
            while (end > first && std::isspace(static_cast<unsigned char>(text_.all()[end - 1]))) --end;
            if (form != Parameters::kOwn) cut(end, text_.past(value.getEnd()).value_or(right_));
        }
        if (parameter->getDeclName().isEmpty()) edits.insert(end - left_ - 1, " " + parameter_name(i));
        const auto* constant = parameter->getAttr<CUDAGridConstantAttr>();
        if (form == Parameters::kBody && constant) {
            const unsigned from = text_.used(constant->getLocation()).value_or(first);
            cut(from, text_.past(constant->getLocation()).value_or(from));
            edits.insert(text_.spelled(parameter->getLocation()).value_or(end) - left_ - 1, "&");
        }
    }
    const std::string list = text_.piece(left_ + 1, right_);
    return edits.apply(list).value_or(list);
}

std::string Entry::arguments() const {
    std::string list;
    for (unsigned i = 0; i < declaration_->getNumParams(); ++i)
        list += ", " + parameter_name(i) + (declaration_->getParamDecl(i)->isParameterPack() ? "..." : "");
    return list;
}

std::string Entry::tail() const {
    const std::string between = text_.piece(right_ + 1, open);
    const bool blank = between.find_first_not_of(" \t\r\n") == std::string::npos;
    return !blank ? between : close == open ? "" : " ";
}

}  // namespace smt::rewriter::source
