// One walk over the syntax tree: kernels, and for every function what the rules want to know of it.
#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DynamicRecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>

#include <algorithm>

#include "rewriter/source/facts.h"

namespace smt::rewriter::source {

using namespace clang;

const FunctionDecl* Program::key(const FunctionDecl* function) {
    if (const auto* method = dyn_cast<CXXMethodDecl>(function); method && method->getParent()->isLambda())
        return lambdas_
            .try_emplace(method->getParent()->getLocation().getRawEncoding(), method->getCanonicalDecl())
            .first->second;
    if (const FunctionDecl* pattern = function->getTemplateInstantiationPattern()) function = pattern;
    return function->getCanonicalDecl();
}

std::vector<const FunctionDecl*> Program::reach(const FunctionDecl* from) const {
    std::vector<const FunctionDecl*> order = {from};
    std::set<const FunctionDecl*> seen = {from};
    auto add = [&](const FunctionDecl* target) {
        if (seen.insert(target).second) order.push_back(target);
    };
    for (size_t at = 0; at < order.size(); ++at) {
        const Function* function = find(order[at]);
        if (!function) continue;
        for (const Use& use : function->uses) add(use.target);
        if (function->indirect)
            for (const FunctionDecl* target : addressed) add(target);
    }
    return order;
}

namespace {

template <typename Item>
void add_once(std::vector<Item>& items, const Item& item, SourceLocation where,
              SourceLocation (*place)(const Item&)) {
    for (const Item& known : items)
        if (place(known) == where) return;
    items.push_back(item);
}

// A function that says nothing is the host's in a .cu file, and the device's with NVRTC.
bool runs_on_device(const FunctionDecl* function, bool unless_said) {
    if (function->hasAttr<CUDAGlobalAttr>()) return true;
    const auto* device = function->getAttr<CUDADeviceAttr>();
    if (device && !device->isImplicit()) return true;
    const auto* host = function->getAttr<CUDAHostAttr>();
    return unless_said && !(host && !host->isImplicit());
}

// By virtual functions: the templates of a RecursiveASTVisitor take longer to compile than all else here.
class Collector : public DynamicRecursiveASTVisitor {
    using Base = DynamicRecursiveASTVisitor;

public:
    Collector(Program& program, bool device_only) : program_(program), device_only_(device_only) {
        ShouldVisitTemplateInstantiations = true;
    }

    bool TraverseDecl(Decl* declaration) override {
        auto* function = dyn_cast_or_null<FunctionDecl>(declaration);
        if (!function || !function->doesThisDeclarationHaveABody()) return Base::TraverseDecl(declaration);
        Function* const outer = current_;
        enter(function);
        add_kernel(function);
        const bool going = Base::TraverseDecl(declaration);
        current_ = outer;
        return going;
    }

    bool TraverseLambdaExpr(LambdaExpr* lambda) override {
        for (unsigned i = 0; i < lambda->capture_size(); ++i)
            if (!TraverseLambdaCapture(lambda, lambda->capture_begin() + i, lambda->capture_init_begin()[i]))
                return false;
        CXXMethodDecl* const body = lambda->getCallOperator();
        use(body, lambda->getBeginLoc());
        Function* const outer = current_;
        const bool on_device = outer && runs_on_device(outer->definition, device_only_);
        if (on_device || runs_on_device(body, device_only_)) program_.addressed.insert(program_.key(body));
        enter(body);
        if (!current_->lambda) {
            current_->lambda = lambda;
            current_->around = outer;
        }
        bool going = TraverseStmt(lambda->getBody());
        if (FunctionTemplateDecl* generic = lambda->getLambdaClass()->getDependentLambdaCallOperator())
            for (FunctionDecl* instance : generic->specializations())
                if (instance->getBody()) going = going && TraverseStmt(instance->getBody());
        current_ = outer;
        return going;
    }

    // Not evaluated.
    bool TraverseUnaryExprOrTypeTraitExpr(UnaryExprOrTypeTraitExpr*) override { return true; }
    bool TraverseCXXNoexceptExpr(CXXNoexceptExpr*) override { return true; }
    bool TraverseCXXTypeidExpr(CXXTypeidExpr*) override { return true; }
    bool TraverseRequiresExpr(RequiresExpr*) override { return true; }
    bool TraverseConceptSpecializationExpr(ConceptSpecializationExpr*) override { return true; }
    bool TraverseDecltypeTypeLoc(DecltypeTypeLoc, bool) override { return true; }

    bool VisitDeclRefExpr(DeclRefExpr* reference) override {
        if (const auto* variable = dyn_cast<VarDecl>(reference->getDecl())) {
            if (current_ && is_builtin(variable)) {
                const Read read{variable->getName() == "gridDim", reference->getBeginLoc()};
                add_once<Read>(current_->reads, read, read.where, [](const Read& it) { return it.where; });
            }
        } else if (const auto* function = dyn_cast<FunctionDecl>(reference->getDecl())) {
            use(function, reference->getBeginLoc());
            if (!callees_.count(reference)) addressed(function);
        }
        return true;
    }
    bool VisitMemberExpr(MemberExpr* member) override {
        if (const auto* method = dyn_cast<CXXMethodDecl>(member->getMemberDecl())) {
            use(method, member->getExprLoc());
            if (method->isVirtual() && current_) current_->indirect = true;
        }
        return true;
    }
    bool VisitCXXConstructExpr(CXXConstructExpr* construction) override {
        use(construction->getConstructor(), construction->getLocation());
        use_special(construction->getConstructor()->getParent(), construction->getLocation(), 0);
        return true;
    }
    bool VisitCXXDefaultArgExpr(CXXDefaultArgExpr* argument) override {
        return !argument->getParam()->hasInit() || TraverseStmt(argument->getExpr());
    }
    bool VisitCXXDefaultInitExpr(CXXDefaultInitExpr* initializer) override {
        return TraverseStmt(initializer->getExpr());
    }

    bool VisitVarDecl(VarDecl* variable) override {
        const auto* mark = variable->getAttr<AnnotateAttr>();
        const QualType type = variable->getType();
        if (!mark || mark->getAnnotation() != "smt_shared") return true;
        (current_ ? current_->shares : program_.shares) = true;
        if (!current_ || variable->hasExternalStorage()) return true;
        if (type->isDependentType() || type->isIncompleteType() || variable->isInvalidDecl()) return true;
        const CharUnits size = variable->getASTContext().getTypeSizeInChars(type);
        uint64_t& bytes = current_->shared[variable->getLocation().getRawEncoding()];
        bytes = std::max(bytes, static_cast<uint64_t>(size.getQuantity()));
        return true;
    }
    bool VisitCXXMethodDecl(CXXMethodDecl* method) override {
        if (method->isVirtual() && method->hasBody()) addressed(method);
        return true;
    }
    bool VisitCallExpr(CallExpr* call) override {
        const Expr* callee = call->getCallee()->IgnoreParenImpCasts();
        if (isa<DeclRefExpr>(callee)) callees_.insert(cast<DeclRefExpr>(callee));
        if (current_ && !call->getDirectCallee() && !call->isTypeDependent() && !callee->isTypeDependent() &&
            !isa<CXXPseudoDestructorExpr>(callee))
            current_->indirect = true;
        return true;
    }
    bool VisitCUDAKernelCallExpr(CUDAKernelCallExpr*) override {
        if (current_) current_->launches = true;
        return true;
    }
    bool VisitReturnStmt(ReturnStmt* statement) override {
        if (current_)
            add_once<const ReturnStmt*>(current_->returns, statement, statement->getBeginLoc(),
                                        [](const ReturnStmt* const& it) { return it->getBeginLoc(); });
        return true;
    }
    bool VisitGCCAsmStmt(GCCAsmStmt* statement) override {
        if (current_)
            add_once<const GCCAsmStmt*>(current_->assembly, statement, statement->getBeginLoc(),
                                        [](const GCCAsmStmt* const& it) { return it->getBeginLoc(); });
        return true;
    }
    bool VisitStmt(Stmt* statement) override {
        if (!current_) return true;
        if (isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(statement)) {
            current_->loops.push_back(statement->getSourceRange());
        } else if (isa<GotoStmt, IndirectGotoStmt>(statement)) {
            current_->jumps = true;
        } else if (isa<RecoveryExpr>(statement)) {
            current_->broken = true;
        }
        return true;
    }

private:
    // blockIdx and gridDim themselves, not a program's variable of that name.
    static bool is_builtin(const VarDecl* variable) {
        if (!variable->getDeclName().isIdentifier()) return false;
        if (variable->getName() != "blockIdx" && variable->getName() != "gridDim") return false;
        return variable->getDeclContext()->getRedeclContext()->isTranslationUnit() &&
               variable->getASTContext().getSourceManager().isInSystemHeader(variable->getLocation());
    }

    void enter(const FunctionDecl* function) {
        const FunctionDecl* key = program_.key(function);
        Function& entry = program_.functions[key];
        if (!entry.definition) {
            const FunctionDecl* pattern = function->getTemplateInstantiationPattern();
            entry.definition = pattern ? pattern : function;
        }
        entry.broken |= function->isInvalidDecl();
        current_ = &entry;
    }

    void add_kernel(const FunctionDecl* function) {
        if (!function->hasAttr<CUDAGlobalAttr>()) return;
        auto same = [&](const KernelFacts& kernel) { return kernel.function == current_; };
        auto found = std::find_if(program_.kernels.begin(), program_.kernels.end(), same);
        if (found == program_.kernels.end()) {
            program_.kernels.push_back({current_, {}});
            found = program_.kernels.end() - 1;
        }
        if (!function->isDependentContext()) found->instances.push_back(function);
    }

    void use(const FunctionDecl* function, SourceLocation where) {
        if (!current_) return addressed(function);
        const Use use{program_.key(function), where};
        for (const Use& known : current_->uses)
            if (known.target == use.target && known.where == use.where) return;
        current_->uses.push_back(use);
    }
    void addressed(const FunctionDecl* function) {
        if (runs_on_device(function, device_only_)) program_.addressed.insert(program_.key(function));
    }

    // What a compiler writes itself (constructors, destructors) calls that of the bases and members.
    void use_special(const CXXRecordDecl* record, SourceLocation where, int depth) {
        if (!record || !record->hasDefinition() || depth > 8) return;
        record = record->getDefinition();
        if (const CXXDestructorDecl* destructor = record->getDestructor();
            destructor && !destructor->isTrivial())
            use(destructor, where);
        auto of_part = [&](QualType type) {
            const CXXRecordDecl* part = type->getBaseElementTypeUnsafe()->getAsCXXRecordDecl();
            if (!part || !part->hasDefinition()) return;
            for (const CXXConstructorDecl* constructor : part->ctors())
                if (constructor->isUserProvided()) use(constructor, where);
            use_special(part, where, depth + 1);
        };
        for (const CXXBaseSpecifier& base : record->bases()) of_part(base.getType());
        for (const FieldDecl* field : record->fields()) of_part(field->getType());
    }

    Program& program_;
    const bool device_only_;
    Function* current_ = nullptr;
    std::set<const DeclRefExpr*> callees_;
};

}  // namespace

Program collect(ASTContext& context, bool device_only) {
    Program program;
    Collector(program, device_only).TraverseDecl(context.getTranslationUnitDecl());
    const SourceManager& sources = context.getSourceManager();
    std::stable_sort(program.kernels.begin(), program.kernels.end(),
                     [&](const KernelFacts& a, const KernelFacts& b) {
                         return sources.isBeforeInTranslationUnit(a.function->definition->getLocation(),
                                                                  b.function->definition->getLocation());
                     });
    return program;
}

}  // namespace smt::rewriter::source
