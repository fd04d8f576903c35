// The device's part of a .cu file: choose, follow, write.
#include "rewriter/source/extract/extract.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "rewriter/source/extract/groups.h"
#include "rewriter/source/extract/names.h"
#include "rewriter/source/extract/needs.h"
#include "rewriter/source/extract/tokens.h"
#include "rewriter/source/extract/writer.h"
#include "rewriter/source/facts.h"
#include "rewriter/source/parse.h"
#include "rewriter/source/symbols.h"

namespace smt::rewriter::source {

using namespace clang;

namespace {

constexpr std::array kLibraries = {"_ZN4cuda",    "_ZN3cub", "_ZN6thrust", "_ZN18cooperative_groups",
                                   "_ZN7cutlass", "_ZN4cute"};

// A type that only its own file has a name for, or none at all.
bool is_nameless(QualType type) {
    while (!type->getPointeeType().isNull()) type = type->getPointeeType();
    const TagDecl* tag = type->getAsTagDecl();
    if (!tag) return false;
    const auto* record = dyn_cast<CXXRecordDecl>(tag);
    if ((record && record->isLambda()) || tag->getParentFunctionOrMethod()) return true;
    const auto* made = dyn_cast<ClassTemplateSpecializationDecl>(tag);
    if (!made) return false;
    for (const TemplateArgument& argument : made->getTemplateArgs().asArray())
        if (argument.getKind() == TemplateArgument::Type && is_nameless(argument.getAsType())) return true;
    return false;
}

class Extractor {
public:
    Extractor(const Input& input, const Wanted* wanted, ASTContext& context, Tokens& tokens, Extract& output)
        : input_(input),
          wanted_(wanted),
          context_(context),
          output_(output),
          groups_(context, tokens, input.toolkit),
          needs_(context, groups_),
          writer_(context, tokens, groups_, needs_, input) {
        if (wanted) {
            std::vector<std::string> symbols = wanted->kernels;
            symbols.insert(symbols.end(), wanted->variables.begin(), wanted->variables.end());
            names_ = find_file_names(symbols);
        }
        writer_.names = names_;
    }

    void run() {
        note_files();
        choose_kernels();
        choose_variables(context_.getTranslationUnitDecl());
        miss_variables();
        if (!output_.error.empty()) return;
        needs_.close();
        output_.error = needs_.problem();
        if (output_.error.empty()) output_.text = writer_.write();
    }

private:
    void fail(const std::string& why) {
        if (output_.error.empty()) output_.error = why;
    }

    void note_files() {
        const SourceManager& sources = context_.getSourceManager();
        for (auto at = sources.fileinfo_begin(); at != sources.fileinfo_end(); ++at) {
            const std::string name = at->first.getName().str();
            std::error_code error;
            if (std::filesystem::exists(name, error)) output_.files.push_back(name);
        }
    }

    void choose_kernels() {
        std::set<std::string> open;
        if (wanted_)
            for (const std::string& symbol : wanted_->kernels) open.insert(plain_symbol(symbol, names_));
        for (const KernelFacts& kernel : collect(context_, false).kernels) {
            for (const FunctionDecl* instance : kernel.instances) {
                const std::string symbol = symbol_of(context_, instance);
                const bool chosen = wanted_ ? open.erase(symbol) != 0
                                            : groups_.origin(instance->getLocation()) == Origin::kProgram;
                if (chosen) choose(instance);
            }
        }
        if (!open.empty())
            fail(fmt::format("the image has {}, which its source does not{}", *open.begin(),
                             hint(*open.begin())));
    }

    static std::string hint(const std::string& symbol) {
        return symbol.find("__nv_dl_wrapper_t") != symbol.npos ||
                       symbol.find("__nv_hdl_wrapper_t") != symbol.npos
                   ? " (a kernel that is launched with an extended lambda, which only nvcc can name)"
                   : "";
    }

    void choose(const FunctionDecl* instance) {
        if (groups_.origin(instance->getLocation()) != Origin::kProgram)
            return fail(readable_name(context_, instance) + " is a kernel of a library's header");
        if (instance->isTemplateInstantiation()) {
            for (const TemplateArgument& argument : instance->getTemplateSpecializationArgs()->asArray())
                if (argument.getKind() == TemplateArgument::Type && is_nameless(argument.getAsType()))
                    return fail(readable_name(context_, instance) +
                                " is instantiated with a type that has no name outside");
            writer_.instances.push_back(instance);
        }
        needs_.add(instance);
    }

    void choose_variables(const DeclContext* context) {
        for (const Decl* declaration : context->decls()) {
            if (const auto* inner = dyn_cast<DeclContext>(declaration);
                inner && isa<NamespaceDecl, LinkageSpecDecl>(declaration)) {
                choose_variables(inner);
                continue;
            }
            const auto* variable = dyn_cast<VarDecl>(declaration);
            if (!variable) continue;
            const Origin origin = groups_.origin(variable->getLocation());
            if (origin == Origin::kLibrary && wanted_) library_.insert(variable->getNameAsString());
            if (!is_device_variable(variable) || origin != Origin::kProgram) continue;
            if (!wanted_) {
                needs_.add(variable);
                continue;
            }
            const std::string symbol = variable_symbol(context_, variable);
            for (const std::string& name : wanted_->variables) {
                if (plain_symbol(name, names_) != symbol) continue;
                needs_.add(variable);
                output_.variables.push_back(name);
                if (!names_.internal.empty() && name.find(names_.internal) != name.npos)
                    writer_.internal.insert(variable);
            }
        }
    }

    // Those of a library's headers are constants that no program asks for, though nvcc lists them for it.
    void miss_variables() {
        for (const std::string& name : wanted_ ? wanted_->variables : std::vector<std::string>()) {
            if (std::count(output_.variables.begin(), output_.variables.end(), name) != 0) continue;
            const std::string plain = plain_symbol(name, names_);
            const bool library = std::any_of(kLibraries.begin(), kLibraries.end(),
                                             [&](const char* one) { return plain.starts_with(one); });
            if (!library && library_.count(plain) == 0)
                fail(fmt::format("the image has variable {}, which its source does not", name));
        }
    }

    const Input& input_;
    const Wanted* wanted_;
    ASTContext& context_;
    Extract& output_;
    std::set<std::string> library_;  // names of libraries' variables
    Groups groups_;
    Needs needs_;
    FileNames names_;
    Writer writer_;
};

}  // namespace

Extract extract(const Input& input, const Wanted* wanted) {
    Extract output;
    Tokens tokens;
    const Problem problem = parse(
        input, input.text,
        [&](ASTContext& context) {
            tokens.finish(context);
            Extractor(input, wanted, context, tokens, output).run();
        },
        [&](Preprocessor& preprocessor) { tokens.watch(preprocessor); });
    if (problem) output.error = problem.message;
    if (!output.error.empty()) output.text.clear();
    return output;
}

}  // namespace smt::rewriter::source
