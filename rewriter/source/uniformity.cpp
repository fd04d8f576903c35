#include "rewriter/source/uniformity.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Analysis/Analyses/ExprMutationAnalyzer.h>
#include <clang/Basic/SourceManager.h>

#include <optional>

namespace smt::rewriter::source {

using namespace clang;

namespace {

using enum Uniformity;

class Evaluation {
public:
    explicit Evaluation(const FunctionDecl* kernel)
        : kernel_(kernel), context_(kernel->getASTContext()), mutations_(*kernel->getBody(), context_) {}

    Uniformity of(const Expr* expression) {
        expression = expression->IgnoreParens();
        if (const std::optional<uint64_t> value = constant(expression)) return uniformity_of_integer(*value);
        if (const auto* cast = dyn_cast<CastExpr>(expression)) return of_cast(cast);
        if (const auto* operation = dyn_cast<BinaryOperator>(expression)) return of_operation(operation);
        if (const auto* operation = dyn_cast<UnaryOperator>(expression)) return of_sign(operation);
        if (const auto* member = dyn_cast<MemberExpr>(expression)) return of_member(member);
        if (const auto* reference = dyn_cast<DeclRefExpr>(expression)) return of_name(reference->getDecl());
        if (const auto* choice = dyn_cast<ConditionalOperator>(expression))
            return plain(of(choice->getCond()), plain(of(choice->getTrueExpr()), of(choice->getFalseExpr())));
        return kDiffers;
    }

private:
    std::optional<uint64_t> constant(const Expr* expression) const {
        const ValueDecl* named = variable_of(expression);
        if (named && builtin(named) == "warpSize") return kWarpThreads;
        Expr::EvalResult result;
        if (expression->isValueDependent() || expression->isTypeDependent() ||
            !expression->getType()->isIntegralOrEnumerationType() ||
            !expression->EvaluateAsInt(result, context_))
            return std::nullopt;
        return result.Val.getInt().getExtValue();
    }

    bool is_number(QualType type) const { return type->isIntegerType() && !type->isBooleanType(); }

    Uniformity of_cast(const CastExpr* cast) {
        const Expr* inner = cast->getSubExpr();
        const bool keeps = cast->getCastKind() == CK_LValueToRValue || cast->getCastKind() == CK_NoOp ||
                           (cast->getCastKind() == CK_IntegralCast && is_number(cast->getType()));
        const Uniformity value = of(inner);
        return keeps ? value : plain(value);
    }

    Uniformity of_operation(const BinaryOperator* operation) {
        const Expr *left = operation->getLHS(), *right = operation->getRHS();
        const Uniformity a = of(left), b = of(right);
        const std::optional<uint64_t> by = constant(right);
        const bool numbers = is_number(left->getType()) && is_number(right->getType());
        switch (operation->getOpcode()) {
            case BO_Add:
            case BO_Or:
            case BO_Xor:
                return numbers ? sum(a, b) : plain(a, b);
            case BO_Sub:
                return numbers ? difference(a, b) : plain(a, b);
            case BO_Mul:
                return numbers ? product(a, b) : plain(a, b);
            case BO_And:
                return a == kLanes && by && *by % kWarpThreads == 0 ? kSame32 : product(a, b);
            case BO_Shr:
                return a == kLanes && by && *by >= kWarpBits ? kSame : plain(a, b);
            case BO_Shl:
                return !may_differ(a) && by && *by >= kWarpBits ? kSame32 : plain(a, b);
            case BO_Div:  // a negative number is divided towards zero: 32 in a row may have two quotients
                return a == kLanes && by && *by != 0 && *by % kWarpThreads == 0 && is_positive(left)
                           ? kSame
                           : plain(a, b);
            case BO_Comma:
                return kDiffers;
            default:
                return operation->isAssignmentOp() ? kDiffers : plain(a, b);
        }
    }

    Uniformity of_sign(const UnaryOperator* operation) {
        switch (operation->getOpcode()) {
            case UO_Plus:
            case UO_Minus:
            case UO_Not:
            case UO_LNot:
                return plain(of(operation->getSubExpr()));
            default:
                return kDiffers;
        }
    }

    // CUDA's threadIdx and its like, not a program's variable of that name.
    StringRef builtin(const ValueDecl* declaration) const {
        const auto* variable = dyn_cast<VarDecl>(declaration);
        const bool toolkit = variable && variable->getDeclName().isIdentifier() &&
                             variable->hasGlobalStorage() &&
                             context_.getSourceManager().isInSystemHeader(variable->getLocation());
        return toolkit ? variable->getName() : StringRef();
    }

    const ValueDecl* variable_of(const Expr* expression) const {
        const auto* reference = dyn_cast<DeclRefExpr>(expression->IgnoreParenImpCasts());
        return reference ? reference->getDecl() : nullptr;
    }

    Uniformity of_member(const MemberExpr* member) {
        const ValueDecl* variable = variable_of(member->getBase());
        if (!variable || member->isArrow() || !member->getMemberDecl()->getDeclName().isIdentifier())
            return kDiffers;
        const StringRef name = builtin(variable), part = member->getMemberDecl()->getName();
        if (name == "threadIdx") return part == "x" ? kLanes : kSame;
        if (name == "blockDim") return part == "x" ? kSame32 : kSame;
        if (name == "blockIdx" || name == "gridDim") return kSame;
        return isa<ParmVarDecl>(variable) ? of_name(variable) : kDiffers;
    }

    Uniformity of_name(const ValueDecl* declaration) {
        if (isa<EnumConstantDecl, NonTypeTemplateParmDecl>(declaration)) return kSame;
        const auto* variable = dyn_cast<VarDecl>(declaration);
        if (!variable || variable->getType()->isReferenceType() || variable->getType().isVolatileQualified())
            return kDiffers;
        if (variable->getDeclContext() != kernel_ || !variable->hasLocalStorage() || changes(variable))
            return kDiffers;
        if (isa<ParmVarDecl>(variable)) return kSame;
        if (!variable->getInit() || ++depth_ > kDeepest) return kDiffers;
        const Uniformity value = of(variable->getInit());
        --depth_;
        return variable->getType()->isIntegerType() ? value : plain(value);
    }

    bool changes(const VarDecl* variable) {
        return !variable->getType().isConstQualified() && mutations_.isMutated(variable);
    }

    // Made of threadIdx.x alone, or without a sign.
    bool is_positive(const Expr* expression) {
        if (expression->getType()->isUnsignedIntegerType()) return true;
        expression = expression->IgnoreParenCasts();
        if (const auto* member = dyn_cast<MemberExpr>(expression)) {
            const ValueDecl* variable = variable_of(member->getBase());
            return variable && builtin(variable) == "threadIdx";
        }
        const auto* variable = dyn_cast_or_null<VarDecl>(variable_of(expression));
        return variable && !isa<ParmVarDecl>(variable) && variable->getInit() && !changes(variable) &&
               !isa<DeclRefExpr>(variable->getInit()->IgnoreParenCasts()) && is_positive(variable->getInit());
    }

    static constexpr int kDeepest = 64;

    const FunctionDecl* kernel_;
    ASTContext& context_;
    ExprMutationAnalyzer mutations_;
    int depth_ = 0;
};

}  // namespace

Uniformity uniformity_of(const Expr* expression, const FunctionDecl* kernel) {
    return Evaluation(kernel).of(expression);
}

}  // namespace smt::rewriter::source
