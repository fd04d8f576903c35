#include "runtime/jit/worker/ptx_compiler.h"

#include <fmt/format.h>

#include <variant>

#include "runtime/image/image.h"

#ifdef SMT_PTX_COMPILER
#include <nvPTXCompiler.h>
#endif

namespace smt::runtime::jit {

#ifdef SMT_PTX_COMPILER

namespace {

template <typename Size, typename Log>
std::string whole_log(nvPTXCompilerHandle compiler, Size size, Log log) {
    size_t bytes = 0;
    if (size(compiler, &bytes) != NVPTXCOMPILE_SUCCESS || bytes == 0) return "";
    std::string text(bytes + 1, '\0');
    log(compiler, text.data());
    return text.substr(0, text.find('\0'));
}

Trouble trouble_of(nvPTXCompileResult status) {
    switch (status) {
        case NVPTXCOMPILE_SUCCESS:
        case NVPTXCOMPILE_ERROR_OUT_OF_MEMORY:
            return Trouble::kNone;
        case NVPTXCOMPILE_ERROR_UNSUPPORTED_PTX_VERSION:
            return Trouble::kTooNew;
        default:
            return Trouble::kInvalid;
    }
}

Result compile(const std::string& text, const Order& order) {
    Result result;
    std::vector<std::string> options = order.source.options;
    options.push_back("--gpu-name=" + order.architecture);
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    nvPTXCompilerHandle compiler = nullptr;
    nvPTXCompileResult status = nvPTXCompilerCreate(&compiler, text.size(), text.c_str());
    if (status == NVPTXCOMPILE_SUCCESS)
        status = nvPTXCompilerCompile(compiler, static_cast<int>(pointers.size()), pointers.data());
    size_t bytes = 0;
    if (status == NVPTXCOMPILE_SUCCESS) status = nvPTXCompilerGetCompiledProgramSize(compiler, &bytes);
    result.image.resize(bytes);
    if (status == NVPTXCOMPILE_SUCCESS)
        status = nvPTXCompilerGetCompiledProgram(compiler, result.image.data());
    if (compiler) result.log = whole_log(compiler, nvPTXCompilerGetInfoLogSize, nvPTXCompilerGetInfoLog);
    result.trouble = trouble_of(status);
    result.lasting = status == NVPTXCOMPILE_SUCCESS || result.trouble != Trouble::kNone;
    if (status != NVPTXCOMPILE_SUCCESS) {
        result.image.clear();
        if (compiler)
            result.reason = whole_log(compiler, nvPTXCompilerGetErrorLogSize, nvPTXCompilerGetErrorLog);
        if (result.reason.empty()) result.reason = fmt::format("nvPTXCompiler: error {}", int{status});
    }
    if (compiler) nvPTXCompilerDestroy(&compiler);
    return result;
}

}  // namespace

Result compile_ptx(const Order& order) {
    Result result;
    result.trouble = Trouble::kInvalid;
    if (order.inputs.size() != 1) return result.reason = "not one text", result;
    const Input& input = order.inputs.front();
    image::Entry entry;
    entry.kind = image::Kind::kPtx;
    entry.compression = static_cast<image::Compression>(input.packed);
    entry.bytes = input.bytes;
    entry.stored = input.data;
    auto text = image::expand(entry);
    if (auto* problem = std::get_if<image::Problem>(&text)) return result.reason = problem->text, result;
    return compile(std::get<std::string>(text), order);
}

#else

Result compile_ptx(const Order&) {
    Result result;
    result.trouble = Trouble::kMissing;
    result.reason = "this build of smt has no nvPTXCompiler";
    return result;
}

#endif

}  // namespace smt::runtime::jit
