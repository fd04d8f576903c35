// Parse, judge, edit, and parse again: what does not parse any more is left as it was.
#include "rewriter/source/rewrite.h"

#include <clang/AST/ASTContext.h>
#include <fmt/format.h>

#include <set>

#include "rewriter/device/managed_names.h"
#include "rewriter/source/edits.h"
#include "rewriter/source/facts.h"
#include "rewriter/source/headers.h"
#include "rewriter/source/judge.h"
#include "rewriter/source/parse.h"
#include "rewriter/source/rules.h"
#include "rewriter/source/symbols.h"
#include "rewriter/source/text.h"

namespace smt::rewriter::source {
namespace {

using clang::ASTContext;
using clang::FunctionDecl;

std::optional<std::string> apply(const Verdict& verdict, const Text& text) {
    Edits edits;
    edits.insert(0, "#include \"smt_worker.h\"\n#line 1\n");
    for (const Managed& managed : verdict.managed) {
        edit_declarations(managed, text, edits);
        edit_reads(managed, text, edits);
        if (managed.reuse == Reuse::kNever) edit_early_returns(*managed.facts->function, text, edits);
        edit_entry(managed, text, edits);
    }
    return edits.apply(text.all());
}

// The symbols of all kernels that the rewritten text makes.
std::set<std::string> kernel_symbols(ASTContext& context) {
    std::set<std::string> symbols;
    for (const KernelFacts& kernel : collect(context, true).kernels)
        for (const FunctionDecl* instance : kernel.instances) symbols.insert(symbol_of(context, instance));
    return symbols;
}

// The kernel that a line of the rewritten text belongs to: the last one that begins at or above it.
const Managed* at_line(const Verdict& verdict, const Text& text, int line) {
    const Managed* found = nullptr;
    for (const Managed& managed : verdict.managed)
        if (text.line(managed.facts->function->definition->getBeginLoc()) <= line) found = &managed;
    return found;
}

class Rewriter {
public:
    Rewriter(const Input& input, ASTContext& context, Output& output)
        : input_(input),
          context_(context),
          output_(output),
          text_(context, input.text),
          program_(collect(context, input.dialect == Dialect::kNvrtc)) {}

    // Each round refuses at least one kernel that its form did not suit.
    void run() {
        for (;;) {
            const Verdict verdict = judge(program_, text_, banned_);
            if (verdict.managed.empty()) {
                output_.text = input_.text;
                return report(verdict, {});
            }
            std::set<std::string> symbols;
            const std::optional<std::string> text = apply(verdict, text_);
            const Problem problem = text ? check(*text, symbols) : Problem{"two changes to one place", 0};
            if (!problem) {
                output_.text = *text;
                return report(verdict, symbols);
            }
            ban(verdict, problem);
        }
    }

private:
    Problem check(const std::string& text, std::set<std::string>& symbols) {
        Input rewritten = input_;
        rewritten.headers.insert(rewritten.headers.begin(), {"smt_worker.h", worker_header()});
        return parse(rewritten, text, [&](ASTContext& context) { symbols = kernel_symbols(context); });
    }

    void ban(const Verdict& verdict, const Problem& problem) {
        const std::string reason = "its persistent form does not parse: " + problem.message;
        const Managed* culprit = problem.line ? at_line(verdict, text_, problem.line) : nullptr;
        for (const Managed& managed : verdict.managed)
            if (!culprit || culprit == &managed) banned_[managed.facts->function] = reason;
    }

    void report(const Verdict& verdict, const std::set<std::string>& symbols) {
        for (const KernelFacts& facts : program_.kernels) {
            const Managed* managed = nullptr;
            for (const Managed& candidate : verdict.managed)
                if (candidate.facts == &facts) managed = &candidate;
            for (const FunctionDecl* instance : facts.instances) {
                RewrittenKernel kernel;
                kernel.name = readable_name(context_, instance);
                kernel.symbol = symbol_of(context_, instance);
                kernel.line = text_.here(instance->getLocation()) ? text_.line(instance->getLocation()) : 0;
                auto refused = verdict.refused.find(facts.function);
                if (refused != verdict.refused.end()) kernel.reason = refused->second;
                if (managed) {
                    kernel.managed = managed_symbol(kernel.symbol, managed->reuse);
                    kernel.reuse = managed->reuse;
                    if (!symbols.count(kernel.managed)) {
                        kernel.managed.clear();
                        kernel.reason = "nothing makes the compiler emit its persistent form";
                    }
                }
                output_.kernels.push_back(std::move(kernel));
            }
        }
    }

    const Input& input_;
    ASTContext& context_;
    Output& output_;
    Text text_;
    Program program_;
    Reasons banned_;
};

}  // namespace

Output rewrite(const Input& input) {
    Output output;
    output.text = input.text;
    output.error = parse(input, input.text, [&](ASTContext& context) {
                       Rewriter(input, context, output).run();
                   }).message;
    return output;
}

}  // namespace smt::rewriter::source
