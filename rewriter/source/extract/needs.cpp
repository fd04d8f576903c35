// What kernels depend on: one walk from declaration to declaration, starting at the kernels.
#include "rewriter/source/extract/needs.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclFriend.h>
#include <clang/AST/DynamicRecursiveASTVisitor.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/ExprConcepts.h>
#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

namespace smt::rewriter::source {

using namespace clang;

bool is_device_variable(const VarDecl* variable) {
    const auto* device = variable->getAttr<CUDADeviceAttr>();
    const auto* constant =
        variable->getAttr<CUDAConstantAttr>();  // Clang gives it to constexpr variables, too
    return (device && !device->isImplicit()) || (constant && !constant->isImplicit()) ||
           variable->hasAttr<HIPManagedAttr>();
}

namespace {

const FunctionDecl* function_in(const Decl* declaration) {
    if (const auto* friends = dyn_cast<FriendDecl>(declaration)) declaration = friends->getFriendDecl();
    if (const auto* pattern = dyn_cast_or_null<FunctionTemplateDecl>(declaration))
        return pattern->getTemplatedDecl();
    return dyn_cast_or_null<FunctionDecl>(declaration);
}

// What to walk for a declaration: with its template's parameters.
const Decl* whole(const Decl* declaration) {
    const TemplateDecl* pattern = declaration->getDescribedTemplate();
    return pattern ? pattern : declaration;
}

bool on_device(const FunctionDecl* function) {
    const auto* device = function->getAttr<CUDADeviceAttr>();
    return (device && !device->isImplicit()) || function->isConstexpr() || function->isDefaulted() ||
           function->isDeleted();
}

// Without these it would be another class.
bool shapes_class(const CXXMethodDecl* method) {
    if (const auto* constructor = dyn_cast<CXXConstructorDecl>(method))
        return constructor->isDefaultConstructor() || constructor->isCopyOrMoveConstructor();
    return isa<CXXDestructorDecl>(method) || method->isVirtual() || method->isCopyAssignmentOperator() ||
           method->isMoveAssignmentOperator();
}

const FunctionTemplateDecl* first_pattern(const FunctionTemplateDecl* pattern) {
    while (const FunctionTemplateDecl* from = pattern->getInstantiatedFromMemberTemplate()) pattern = from;
    return pattern;
}

const CXXRecordDecl* first_pattern(const CXXRecordDecl* record) {
    if (const ClassTemplateDecl* general = record->getDescribedClassTemplate()) {
        while (const ClassTemplateDecl* from = general->getInstantiatedFromMemberTemplate()) general = from;
        return general->getTemplatedDecl();
    }
    const CXXRecordDecl* pattern = record->getTemplateInstantiationPattern();
    return pattern ? pattern : record;
}

std::string loop_hint(const LoopHintAttr& hint, const ASTContext& context) {
    if (hint.getState() == LoopHintAttr::Disable) return "#pragma unroll 1";
    if (hint.getState() != LoopHintAttr::Numeric || !hint.getValue()) return "#pragma unroll";
    std::string value;
    llvm::raw_string_ostream out(value);
    hint.getValue()->printPretty(out, nullptr, context.getPrintingPolicy());
    return "#pragma unroll " + value;
}

}  // namespace

// Tells of each name that it meets.
class Finder : public DynamicRecursiveASTVisitor {
    using Base = DynamicRecursiveASTVisitor;

public:
    Finder(Needs& needs, const Decl* root, bool instance = false)
        : needs_(needs), root_(root), instance_(instance) {
        ShouldVisitImplicitCode = instance;
    }

    bool TraverseDecl(Decl* declaration) override {
        if (declaration && declaration != root_ && declaration->getLexicalDeclContext() &&
            declaration->getLexicalDeclContext()->isRecord() && !declaration->getParentFunctionOrMethod()) {
            if (const FunctionDecl* function = function_in(declaration)) return needs_.member(function), true;
        }
        return Base::TraverseDecl(declaration);
    }
    bool TraverseTemplateName(TemplateName name) override {
        needs_.need(name.getAsTemplateDecl());
        return Base::TraverseTemplateName(name);
    }
    bool VisitType(Type* type) override { return needs_.see(type), true; }
    // What an alias means with its arguments: which specialisation it leads through.
    bool VisitTemplateSpecializationType(TemplateSpecializationType* type) override {
        return !instance_ || !type->isTypeAlias() || TraverseType(type->getAliasedType());
    }
    bool VisitDeclRefExpr(DeclRefExpr* reference) override { return needs_.need(reference->getDecl()), true; }
    bool VisitMemberExpr(MemberExpr* member) override { return needs_.need(member->getMemberDecl()), true; }
    bool VisitCXXConstructExpr(CXXConstructExpr* construction) override {
        return needs_.need(construction->getConstructor()), true;
    }
    bool VisitOverloadExpr(OverloadExpr* names) override { return needs_.candidates(names), true; }
    bool VisitConceptReference(ConceptReference* reference) override {
        return needs_.need(reference->getNamedConcept()), true;
    }
    bool VisitCXXDefaultArgExpr(CXXDefaultArgExpr* argument) override {
        return !argument->getParam()->hasInit() || TraverseStmt(argument->getExpr());
    }
    bool VisitCXXDefaultInitExpr(CXXDefaultInitExpr* initializer) override {
        return TraverseStmt(initializer->getExpr());
    }
    bool VisitCXXNewExpr(CXXNewExpr* creation) override {
        return needs_.need(creation->getOperatorNew()), true;
    }
    bool VisitAttributedStmt(AttributedStmt* statement) override {
        if (instance_) return true;
        for (const Attr* attribute : statement->getAttrs())
            if (const auto* hint = dyn_cast<LoopHintAttr>(attribute))
                needs_.loop_hints_.emplace_back(statement->getSubStmt()->getBeginLoc(),
                                                loop_hint(*hint, needs_.context_));
        return true;
    }

private:
    Needs& needs_;
    const Decl* const root_;
    const bool instance_;
};

void Needs::see(const Type* type) {
    if (const auto* tag = dyn_cast<TagType>(type))
        need(tag->getDecl());
    else if (const auto* name = dyn_cast<TypedefType>(type))
        need(name->getDecl());
    else if (const auto* used = dyn_cast<UsingType>(type))
        need(used->getDecl());
    else if (const auto* made = dyn_cast<TemplateSpecializationType>(type))
        need(made->getTemplateName().getAsTemplateDecl());
    else if (const auto* guessed = dyn_cast<DeducedTemplateSpecializationType>(type))
        need(guessed->getTemplateName().getAsTemplateDecl());
}

void Needs::need(const Decl* declaration) {
    if (!declaration) return;
    if (const auto* shadow = dyn_cast<UsingShadowDecl>(declaration)) return need(shadow->getTargetDecl());
    if (const auto* pattern = dyn_cast<FunctionTemplateDecl>(declaration))
        return need(first_pattern(pattern)->getTemplatedDecl());
    if (const auto* pattern = dyn_cast<TemplateDecl>(declaration); pattern && !isa<ConceptDecl>(pattern))
        return need(pattern->getTemplatedDecl());
    if (isa<EnumConstantDecl, FieldDecl, IndirectFieldDecl>(declaration))
        return need(Decl::castFromDeclContext(declaration->getDeclContext()));
    if (declaration->isTemplateParameter() || isa<ParmVarDecl, BindingDecl, LabelDecl>(declaration)) return;
    if (const auto* function = dyn_cast<FunctionDecl>(declaration)) {
        take_instance(function);
        if (const FunctionDecl* pattern = function->getTemplateInstantiationPattern(false))
            declaration = pattern;
    } else if (const auto* record = dyn_cast<CXXRecordDecl>(declaration)) {
        if (record->isLambda()) return;
        take_instance(record);
        declaration = first_pattern(record);
    } else if (const auto* variable = dyn_cast<VarDecl>(declaration)) {
        if (variable->isLocalVarDecl()) return;
        if (const VarDecl* pattern = variable->getTemplateInstantiationPattern()) declaration = pattern;
    } else if (const auto* enumeration = dyn_cast<EnumDecl>(declaration)) {
        if (const EnumDecl* pattern = enumeration->getTemplateInstantiationPattern()) declaration = pattern;
    }
    if (declaration->getParentFunctionOrMethod()) return;  // in a text that is walked
    if (const auto* named = dyn_cast<NamedDecl>(declaration)) take(named);
}

// An instance of a template: what its arguments are, and what its text means with them.
void Needs::take_instance(const FunctionDecl* function) {
    if (!function->isTemplateInstantiation() || !instances_.insert(function->getCanonicalDecl()).second)
        return;
    open_instances_.push_back(function);
}

void Needs::take_instance(const CXXRecordDecl* record) {
    if (record->isDependentType() || !instances_.insert(record->getCanonicalDecl()).second) return;
    if (isa<ClassTemplateSpecializationDecl>(record) || record->getTemplateInstantiationPattern())
        open_instances_.push_back(record);
}

// Where it is from. What the toolkit declares besides the host's headers is the toolkit's.
Origin Needs::origin_of(const NamedDecl* declaration, SourceLocation* place) {
    *place = declaration->getLocation();
    const Origin first = groups_.origin(*place);
    if (first != Origin::kSystem || !isa<FunctionDecl>(declaration)) return first;
    for (const Decl* other : declaration->redecls()) {
        if (groups_.origin(other->getLocation()) == Origin::kLibrary)
            return *place = other->getLocation(), Origin::kLibrary;
    }
    return first;
}

void Needs::take(const NamedDecl* declaration) {
    if (!seen_.insert(declaration->getCanonicalDecl()).second) return;
    for (const DeclContext* outer = declaration->getDeclContext(); outer; outer = outer->getParent())
        if (const auto* space = dyn_cast<NamespaceDecl>(outer)) spaces_.insert(space->getCanonicalDecl());
    if (const auto* outer = dyn_cast<CXXRecordDecl>(declaration->getDeclContext())) need(outer);
    SourceLocation place;
    const Origin origin = origin_of(declaration, &place);
    if (origin == Origin::kProgram) {
        if (isa<FunctionDecl>(declaration)) functions_.insert(declaration->getDeclName());
        return open_.push_back(declaration);
    }
    if (declaration->getDeclContext()->isRecord()) return;  // comes with its class
    if (origin == Origin::kLibrary) {
        if (const Tokens::Include* include = groups_.include_of(place))
            includes_.try_emplace(include->name, include->where);
    } else if (origin == Origin::kSystem && !standard_.take(declaration) && problem_.empty()) {
        problem_ = fmt::format("device code uses {}, which NVRTC does not have",
                               declaration->getQualifiedNameAsString());
    }
}

// A function inside a class, met on the way through it.
void Needs::member(const FunctionDecl* function) {
    const auto* method = dyn_cast<CXXMethodDecl>(function);
    if (!method || method->isImplicit()) return;
    if (on_device(method) && (isa<CXXConstructorDecl>(method) || shapes_class(method))) return need(method);
    if (shapes_class(method) && method->getTypeSourceInfo())
        Finder(*this, nullptr).TraverseTypeLoc(method->getTypeSourceInfo()->getTypeLoc());
}

Keep Needs::keep(const FunctionDecl* member) const {
    if (has(member)) return Keep::kAll;
    const auto* method = dyn_cast<CXXMethodDecl>(member);
    // A template's friend that is a template is not known to be the function outside.
    if (!method && !member->doesThisDeclarationHaveABody() && functions_.count(member->getDeclName()) != 0)
        return Keep::kAll;
    return method && shapes_class(method) ? Keep::kDeclaration : Keep::kNothing;
}

void Needs::candidates(const OverloadExpr* names) {
    std::vector<const NamedDecl*> found;
    const auto* lookup = dyn_cast<UnresolvedLookupExpr>(names);
    if (lookup && lookup->requiresADL() && !lookup->hasExplicitTemplateArgs())
        return;  // may be unknown as yet
    for (const NamedDecl* declaration : names->decls()) found.push_back(declaration->getUnderlyingDecl());
    if (!found.empty()) ambiguous_[names] = std::move(found);
}

// A name of which no instance showed the meaning: then all that it may mean. Says whether there was one.
bool Needs::add_candidates() {
    for (const auto& [place, declarations] : ambiguous_) {
        auto known = [&](const NamedDecl* declaration) {
            const FunctionDecl* function = function_in(declaration);
            return seen_.count(function ? function->getCanonicalDecl() : declaration->getCanonicalDecl()) !=
                   0;
        };
        if (std::any_of(declarations.begin(), declarations.end(), known)) continue;
        for (const NamedDecl* declaration : declarations) need(declaration);
        ambiguous_.erase(place);
        return true;
    }
    return false;
}

void Needs::close() {
    do {
        while (!open_.empty() || !open_instances_.empty()) {
            std::deque<const Decl*>& from = open_.empty() ? open_instances_ : open_;
            const Decl* next = from.front();
            from.pop_front();
            if (&from == &open_)
                walk(next);
            else
                walk_instance(next);
        }
    } while (add_candidates());
}

// "struct A {} a;": the variable is the host's, and the type does without it.
bool Needs::comes_along(const Group& group, const Decl* other) const {
    if (const auto* made = dyn_cast<ClassTemplateSpecializationDecl>(other))
        return made->isExplicitSpecialization();
    const auto* variable = dyn_cast<VarDecl>(other);
    const bool typed = std::any_of(group.declarations.begin(), group.declarations.end(),
                                   [](const Decl* one) { return isa<TagDecl>(one); });
    return !variable || !typed || variable->getType().isConstQualified() || is_device_variable(variable);
}

void Needs::write(const Decl* declaration) {
    const Group* group = groups_.find(declaration);
    if (!group || !written_.insert(group).second) return;
    for (const Decl* other : group->declarations) {
        if (const auto* linkage = dyn_cast<LinkageSpecDecl>(other)) {
            for (const Decl* inner : linkage->decls()) need(inner);
        } else if (comes_along(*group, other)) {
            need(other);
        }
    }
}

void Needs::walk(const Decl* declaration) {
    if (const auto* made = dyn_cast<ClassTemplateSpecializationDecl>(declaration))
        need(made->getSpecializedTemplate());
    if (const auto* function = dyn_cast<FunctionDecl>(declaration)) need(function->getPrimaryTemplate());
    for (const Decl* one : declaration->redecls()) {
        const auto* function = dyn_cast<FunctionDecl>(one);
        const bool is_friend = function && function->getLexicalDeclContext()->isRecord() &&
                               !function->getDeclContext()->isRecord();
        if (is_friend && !function->doesThisDeclarationHaveABody())
            continue;  // its class is not needed for this
        write(one);
        if (const auto* record = dyn_cast<CXXRecordDecl>(one);
            record && !record->isThisDeclarationADefinition())
            continue;
        const Decl* all = whole(one);
        Finder(*this, all).TraverseDecl(const_cast<Decl*>(all));
    }
}

void Needs::walk_instance(const Decl* declaration) {
    Finder finder(*this, declaration, true);
    auto arguments = [&](llvm::ArrayRef<TemplateArgument> list) {
        for (const TemplateArgument& argument : list) {
            finder.TraverseTemplateArgument(argument);
            if (argument.getKind() == TemplateArgument::Declaration) need(argument.getAsDecl());
        }
    };
    if (const auto* function = dyn_cast<FunctionDecl>(declaration)) {
        if (const TemplateArgumentList* list = function->getTemplateSpecializationArgs())
            arguments(list->asArray());
        finder.TraverseType(function->getType());
        if (const auto* constructor = dyn_cast<CXXConstructorDecl>(function))
            for (CXXCtorInitializer* initializer : constructor->inits())
                finder.TraverseConstructorInitializer(initializer);
        if (const FunctionDecl* definition = nullptr; function->hasBody(definition))
            finder.TraverseStmt(definition->getBody());
        return;
    }
    const auto* record = cast<CXXRecordDecl>(declaration);
    if (const auto* made = dyn_cast<ClassTemplateSpecializationDecl>(record)) {
        arguments(made->getTemplateArgs().asArray());
        need(made->getSpecializedTemplate());
        const auto from = made->getSpecializedTemplateOrPartial();
        if (auto* partial = dyn_cast<ClassTemplatePartialSpecializationDecl*>(from)) need(partial);
    }
    record = record->getDefinition();
    if (!record || groups_.origin(record->getLocation()) == Origin::kSystem) return;
    for (const CXXBaseSpecifier& base : record->bases()) finder.TraverseType(base.getType());
    for (const Decl* part : record->decls()) {
        if (const auto* field = dyn_cast<DeclaratorDecl>(part); field && !isa<FunctionDecl>(field))
            finder.TraverseType(field->getType());
        if (isa<CXXConstructorDecl, CXXDestructorDecl>(part) && cast<FunctionDecl>(part)->hasBody())
            need(part);  // of those used
    }
}

}  // namespace smt::rewriter::source
