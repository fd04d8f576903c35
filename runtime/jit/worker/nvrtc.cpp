#include "runtime/jit/worker/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <vector>

#include "runtime/jit/toolkit.h"

namespace smt::runtime::jit {

namespace {

// For readers of the reason alone: the first line that says what is wrong.
std::string first_error(const std::string& log) {
    const size_t at = log.find("error");
    if (at == log.npos) return "";
    const size_t before = log.rfind('\n', at);
    const size_t begin = before == log.npos ? 0 : before + 1;
    return log.substr(begin, log.find('\n', at) - begin);
}

// False: there is none, and nothing in `image`.
template <typename Size, typename Image>
bool read(nvrtcProgram program, Size size, Image image, std::string& bytes) {
    size_t count = 0;
    bool good = size(program, &count) == NVRTC_SUCCESS && count != 0;
    bytes.resize(good ? count : 0);
    good = good && image(program, bytes.data()) == NVRTC_SUCCESS;
    if (!good) bytes.clear();
    return good;
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> all;
    for (const std::string& text : texts) all.push_back(text.c_str());
    return all;
}

}  // namespace

Nvrtc::Nvrtc() {
    for (const std::string& path : library_paths("libnvrtc.so.13", settings::Id::kNvrtc)) {
        if (!load(path)) continue;
        int major = 0, minor = 0;
        get_version_(&major, &minor);
        version_ = fmt::format("{}.{}", major, minor);
        problem_.clear();
        return;
    }
}

bool Nvrtc::load(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        problem_ = fmt::format("there is no NVRTC: {}", dlerror());
        return false;
    }
    auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        if (!function) problem_ = fmt::format("{} has no {}", path, name);
        return function != nullptr;
    };
    return find(get_version_, "nvrtcVersion") && find(error_string_, "nvrtcGetErrorString") &&
           find(create_, "nvrtcCreateProgram") && find(destroy_, "nvrtcDestroyProgram") &&
           find(add_name_expression_, "nvrtcAddNameExpression") && find(compile_, "nvrtcCompileProgram") &&
           find(ptx_size_, "nvrtcGetPTXSize") && find(ptx_, "nvrtcGetPTX") &&
           find(cubin_size_, "nvrtcGetCUBINSize") && find(cubin_, "nvrtcGetCUBIN") &&
           find(log_size_, "nvrtcGetProgramLogSize") && find(log_, "nvrtcGetProgramLog");
}

Result Nvrtc::compile(const Source& source, Form form, std::string* ptx) const {
    Result result;
    if (!problem_.empty()) return result.reason = problem_, result;
    std::vector<const char*> header_texts, header_names;
    for (const auto& [name, text] : source.headers) {
        header_names.push_back(name.c_str());
        header_texts.push_back(text.c_str());
    }
    nvrtcProgram program = nullptr;
    nvrtcResult status =
        create_(&program, source.text.c_str(), source.name.c_str(), static_cast<int>(header_names.size()),
                header_texts.data(), header_names.data());
    for (size_t i = 0; status == NVRTC_SUCCESS && i < source.name_expressions.size(); ++i) {
        status = add_name_expression_(program, source.name_expressions[i].c_str());
    }
    if (status == NVRTC_SUCCESS) {
        std::vector<const char*> options = pointers(source.options);
        status = compile_(program, static_cast<int>(options.size()), options.data());
        size_t bytes = 0;
        if (log_size_(program, &bytes) == NVRTC_SUCCESS && bytes > 1) {
            result.log.resize(bytes);
            log_(program, result.log.data());
            result.log.pop_back();  // its NUL
        }
    }
    // Memory and the like are this process's trouble; whatever else it says it would say again.
    result.lasting = status == NVRTC_SUCCESS || status == NVRTC_ERROR_COMPILATION;
    if (status == NVRTC_SUCCESS) fetch(program, form, result);
    if (status == NVRTC_SUCCESS && ptx) fetch(program, *ptx);
    if (status != NVRTC_SUCCESS)
        result.reason = fmt::format("NVRTC: {} {}", error_string_(status), first_error(result.log));
    if (program) destroy_(&program);
    return result;
}

void Nvrtc::fetch(nvrtcProgram program, Form form, Result& result) const {
    const bool ptx = form == Form::kPtx;
    if (ptx ? fetch(program, result.image) : read(program, cubin_size_, cubin_, result.image)) return;
    result.reason = ptx ? "NVRTC made no PTX" : "NVRTC made no cubin: its options name no real architecture";
}

bool Nvrtc::fetch(nvrtcProgram program, std::string& ptx) const {
    return read(program, ptx_size_, ptx_, ptx);
}

}  // namespace smt::runtime::jit
