// One text through Clang, up to its syntax tree.
//
// Everything that is not on the disk is a virtual file: the text, the headers handed over with it, Clang's
// own headers, and the prelude. Clang's driver finds the host's C++ headers (kNvcc only).
#include "rewriter/source/parse.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/DiagnosticSema.h>
#include <clang/Basic/OffloadArch.h>
#include <clang/Driver/CreateInvocationFromArgs.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <fmt/format.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <filesystem>

#include "rewriter/source/headers.h"
#include "rewriter/source/options.h"

namespace smt::rewriter::source {
namespace {

namespace diag = clang::diag;
namespace vfs = llvm::vfs;

constexpr const char* kPlace = "/smt.rewriter";  // where the virtual files are

// What only a compiler that keeps host and device apart would mind.
bool about_sides(unsigned id) {
    switch (id) {
        case diag::err_attributes_are_not_compatible:  // force_cuda_host_device on an explicit instantiation
        case diag::err_ref_bad_target:
        case diag::err_ref_bad_target_global_initializer:
        case diag::err_capture_bad_target:
        case diag::err_cuda_ovl_target:
        case diag::err_cuda_unattributed_constexpr_cannot_overload_device:
        case diag::err_cuda_device_exceptions:
        case diag::err_cuda_device_kernel_launch_not_supported:
        case diag::err_cuda_device_kernel_launch_require_rdc:
        case diag::err_cuda_host_shared:
        case diag::err_cuda_nonstatic_constdev:
        case diag::err_cuda_vla:
        case diag::err_deduction_guide_target_attr:
        case diag::err_dynamic_var_init:
        case diag::err_shared_var_init:
        case diag::err_va_arg_in_device:
        case diag::err_variadic_device_fn:
        case diag::err_target_unsupported_type:
            return true;
        default:
            return false;
    }
}

// Keeps the first error that counts.
class Listener : public clang::DiagnosticConsumer {
public:
    Listener(std::string main_path, std::string shown_name, size_t lines)
        : main_path_(std::move(main_path)), shown_name_(std::move(shown_name)), lines_(lines) {}

    const Problem& problem() const { return problem_; }
    void fail(const std::string& message) {
        if (!problem_) problem_ = {shown_name_ + ":1: " + message, 1};
    }

    void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& found) override {
        if (level < clang::DiagnosticsEngine::Error || problem_ || about_sides(found.getID())) return;
        llvm::SmallString<256> text;
        found.FormatDiagnostic(text);
        if (!found.hasSourceManager() || found.getLocation().isInvalid()) return fail(text.str().str());
        const clang::SourceManager& sources = found.getSourceManager();
        const clang::SourceLocation place = sources.getExpansionLoc(found.getLocation());
        const bool fatal = level == clang::DiagnosticsEngine::Fatal;
        if (!fatal &&
            (sources.isInSystemHeader(place) || sources.getFilename(place).starts_with(kPlace + prelude_)))
            return;
        const clang::PresumedLoc shown = sources.getPresumedLoc(place);
        const bool here = sources.isWrittenInMainFile(place);
        if (here && sources.getFileOffset(place) >= lines_) return;  // a wanted instantiation
        std::string file = here ? shown_name_ : std::string(shown.getFilename());
        problem_ = {fmt::format("{}:{}: {}", file, shown.getLine(), text.str().str()),
                    here ? static_cast<int>(shown.getLine()) : 0};
    }

private:
    static inline const std::string prelude_ = "/prelude.h";
    std::string main_path_, shown_name_;
    size_t lines_;
    Problem problem_;
};

// Calls back when the whole text is parsed.
class Action : public clang::ASTFrontendAction {
public:
    Action(Listener& listener, const std::function<void(clang::ASTContext&)>& use,
           const std::function<void(clang::Preprocessor&)>& begin)
        : listener_(listener), use_(use), begin_(begin) {}

private:
    struct Consumer : clang::ASTConsumer {
        explicit Consumer(Action& action) : action(action) {}
        void HandleTranslationUnit(clang::ASTContext& context) override {
            if (!action.listener_.problem()) action.use_(context);
        }
        Action& action;
    };
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                          llvm::StringRef) override {
        if (begin_) begin_(compiler.getPreprocessor());
        return std::make_unique<Consumer>(*this);
    }

    Listener& listener_;
    const std::function<void(clang::ASTContext&)>& use_;
    const std::function<void(clang::Preprocessor&)>& begin_;
};

llvm::IntrusiveRefCntPtr<vfs::FileSystem> files(const Input& input, const std::string& text,
                                                const Settings& settings) {
    auto memory = llvm::makeIntrusiveRefCnt<vfs::InMemoryFileSystem>();
    auto add = [&](const std::string& path, std::string_view content) {
        memory->addFile(path, 0,
                        llvm::MemoryBuffer::getMemBufferCopy({content.data(), content.size()}, path));
    };
    const std::string place = kPlace;
    for (const Header& header : clang_headers()) add(place + "/clang/include/" + header.name, header.text);
    for (const Header& header : nvrtc_headers()) add(place + "/nvrtc/" + header.name, header.text);
    for (const auto& [name, content] : input.headers)
        add((std::filesystem::path(place + "/headers") / name).lexically_normal().string(), content);
    add(place + "/prelude.h", input.dialect == Dialect::kNvrtc
                                  ? nvrtc_prelude(settings.architecture)
                                  : nvcc_prelude(settings.architecture, settings.extended_lambda));
    add(main_path(input), text);
    auto overlay = llvm::makeIntrusiveRefCnt<vfs::OverlayFileSystem>(vfs::createPhysicalFileSystem());
    overlay->pushOverlay(memory);
    return overlay;
}

// Newer GPUs than Clang knows are parsed as one that it does.
std::string known_processor(const std::string& processor) {
    return clang::StringToOffloadArch(processor) == clang::OffloadArch::UNKNOWN ? Settings().processor
                                                                                : processor;
}

// Clang 17 and earlier, and NVIDIA's compilers, spell templates that are template arguments alike.
std::vector<std::string> command_line(const Input& input, const Settings& settings) {
    const std::string place = kPlace;
    std::vector<std::string> line = {"clang++",
                                     "-x",
                                     "cuda",
                                     "--cuda-device-only",
                                     "-fsyntax-only",
                                     "-w",
                                     "-nogpulib",
                                     "-nogpuinc",
                                     "-fgpu-rdc",
                                     "--cuda-path=" + input.toolkit,
                                     "--cuda-gpu-arch=" + known_processor(settings.processor),
                                     "-std=" + settings.standard,
                                     "-resource-dir=" + place + "/clang",
                                     "-Wno-unknown-cuda-version",
                                     "-ferror-limit=0",
                                     "-fno-spell-checking",  // of each forgiven error: an eighth of the time
                                     "-ftemplate-backtrace-limit=1",
                                     "-fclang-abi-compat=17",
                                     "-Xclang",
                                     "-target-sdk-version=12.9",
                                     "-Xclang",
                                     "-fcuda-allow-variadic-functions"};
    auto add = [&](std::initializer_list<std::string> more) { line.insert(line.end(), more); };
    if (input.dialect == Dialect::kNvrtc)
        add({"-undef", "-nostdinc", "-isystem", place + "/nvrtc", "-isystem", place + "/clang/include"});
    add({"-I" + place + "/headers"});
    line.insert(line.end(), settings.clang.begin(), settings.clang.end());
    add({"-isystem", input.toolkit + "/include", "-isystem", input.toolkit + "/include/cccl", "-include",
         place + "/prelude.h", main_path(input)});
    return line;
}

// Each asks for one instantiation; an error in one of these lines is the program's to find.
std::string with_wanted(const Input& input, const std::string& text) {
    std::string whole = text + "\n";
    for (size_t i = 0; i < input.name_expressions.size(); ++i)
        whole += fmt::format("static auto const smt_wanted_{} = ({});\n", i, input.name_expressions[i]);
    return whole;
}

}  // namespace

std::string main_path(const Input& input) {
    if (input.dialect == Dialect::kNvcc)
        return std::filesystem::absolute(input.name).lexically_normal().string();
    return std::string(kPlace) + "/text/program.cu";
}

Problem parse(const Input& input, const std::string& text, const std::function<void(clang::ASTContext&)>& use,
              const std::function<void(clang::Preprocessor&)>& begin) {
    const Settings settings = read_options(input.options);
    auto system = files(input, with_wanted(input, text), settings);
    Listener listener(main_path(input), input.name, text.size());

    clang::DiagnosticOptions quiet;
    auto diagnostics = llvm::makeIntrusiveRefCnt<clang::DiagnosticsEngine>(
        llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), quiet, &listener, false);
    const std::vector<std::string> line = command_line(input, settings);
    std::vector<const char*> arguments;
    for (const std::string& argument : line) arguments.push_back(argument.c_str());
    clang::CreateInvocationOptions how;
    how.Diags = diagnostics;
    how.VFS = system;
    std::shared_ptr<clang::CompilerInvocation> invocation = clang::createInvocation(arguments, how);
    if (!invocation) listener.fail("Clang does not take the options");
    if (listener.problem()) return listener.problem();

    clang::CompilerInstance compiler(invocation);
    compiler.setVirtualFileSystem(system);
    compiler.createDiagnostics(&listener, false);
    compiler.createFileManager();
    compiler.getFrontendOpts().DisableFree = false;
    Action action(listener, use, begin);
    compiler.ExecuteAction(action);
    return listener.problem();
}

}  // namespace smt::rewriter::source
