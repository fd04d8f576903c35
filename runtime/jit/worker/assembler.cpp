#include "runtime/jit/worker/assembler.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <vector>

#include "runtime/jit/toolkit.h"

namespace smt::runtime::jit {

Assembler::Assembler() {
    for (const std::string& path : library_paths("libnvJitLink.so.13", settings::Id::kNvJitLink)) {
        if (!load(path)) continue;
        problem_.clear();
        return;
    }
}

bool Assembler::load(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        problem_ = fmt::format("there is no nvJitLink: {}", dlerror());
        return false;
    }
    auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        if (!function) problem_ = fmt::format("{} has no {}", path, name);
        return function != nullptr;
    };
    return find(create_, "nvJitLinkCreate") && find(destroy_, "nvJitLinkDestroy") &&
           find(add_, "nvJitLinkAddData") && find(complete_, "nvJitLinkComplete") &&
           find(cubin_size_, "nvJitLinkGetLinkedCubinSize") && find(cubin_, "nvJitLinkGetLinkedCubin") &&
           find(log_size_, "nvJitLinkGetErrorLogSize") && find(log_, "nvJitLinkGetErrorLog") &&
           find(info_size_, "nvJitLinkGetInfoLogSize") && find(info_, "nvJitLinkGetInfoLog");
}

std::string Assembler::log_of(nvJitLinkHandle link) const {
    size_t bytes = 0;
    if (log_size_(link, &bytes) != NVJITLINK_SUCCESS || bytes <= 1) return "";
    std::string log(bytes, '\0');
    log_(link, log.data());
    return log.substr(0, log.find_first_of(std::string_view("\n\0", 2)));
}

std::string Assembler::assemble(const std::string& ptx, const std::string& architecture,
                                std::string& reason) const {
    reason = problem_;
    if (!reason.empty()) return "";
    const std::string option = "-arch=" + architecture;
    const char* options[] = {option.c_str()};
    nvJitLinkHandle link = nullptr;
    nvJitLinkResult status = create_(&link, 1, options);
    if (status != NVJITLINK_SUCCESS)
        return reason = fmt::format("nvJitLink: error {} for {}", int{status}, architecture), "";
    status = add_(link, NVJITLINK_INPUT_PTX, ptx.c_str(), ptx.size() + 1, "managed");
    if (status == NVJITLINK_SUCCESS) status = complete_(link);
    size_t bytes = 0;
    if (status == NVJITLINK_SUCCESS) status = cubin_size_(link, &bytes);
    std::string cubin(bytes, '\0');
    if (status == NVJITLINK_SUCCESS) status = cubin_(link, cubin.data());
    if (status != NVJITLINK_SUCCESS) {
        reason = fmt::format("nvJitLink: error {}: {}", int{status}, log_of(link));
        cubin.clear();
    }
    destroy_(&link);
    return cubin;
}

namespace {

constexpr std::array kTypes = {
    NVJITLINK_INPUT_CUBIN,  NVJITLINK_INPUT_PTX,     NVJITLINK_INPUT_FATBIN,  // by CUjitInputType
    NVJITLINK_INPUT_OBJECT, NVJITLINK_INPUT_LIBRARY, NVJITLINK_INPUT_LTOIR};
constexpr uint32_t kLinkTimeCode = 5;

template <typename Size, typename Log>
std::string whole_log(nvJitLinkHandle link, Size size, Log log) {
    size_t bytes = 0;
    if (size(link, &bytes) != NVJITLINK_SUCCESS || bytes <= 1) return "";
    std::string text(bytes, '\0');
    log(link, text.data());
    return text.substr(0, text.find('\0'));
}

}  // namespace

Result Assembler::link(const Order& order, const std::string& architecture, nvJitLinkResult& status) const {
    Result result;
    std::vector<std::string> options = order.source.options;
    options.push_back("-arch=" + architecture);
    for (const Input& input : order.inputs)
        if (input.type == kLinkTimeCode) options.push_back("-lto");
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    nvJitLinkHandle link = nullptr;
    status = create_(&link, static_cast<uint32_t>(pointers.size()), pointers.data());
    for (const Input& input : order.inputs) {
        if (status != NVJITLINK_SUCCESS) break;
        status = input.type < kTypes.size() ? add_(link, kTypes[input.type], input.data.data(),
                                                   input.data.size(), input.name.c_str())
                                            : NVJITLINK_ERROR_INCORRECT_INPUT_TYPE;
    }
    if (status == NVJITLINK_SUCCESS) status = complete_(link);
    size_t bytes = 0;
    if (status == NVJITLINK_SUCCESS) status = cubin_size_(link, &bytes);
    result.image.resize(bytes);
    if (status == NVJITLINK_SUCCESS) status = cubin_(link, result.image.data());
    if (link) result.log = whole_log(link, info_size_, info_);
    if (status != NVJITLINK_SUCCESS) {
        result.image.clear();
        result.trouble = Trouble::kInvalid;
        if (link) result.reason = whole_log(link, log_size_, log_);
        if (result.reason.empty()) result.reason = fmt::format("nvJitLink: error {}", int{status});
    }
    if (link) destroy_(&link);
    return result;
}

Result Assembler::link(const Order& order) const {
    Result result;
    result.reason = problem_;
    result.trouble = Trouble::kMissing;
    if (!problem_.empty()) return result;
    nvJitLinkResult status = NVJITLINK_SUCCESS;
    result = link(order, order.architecture, status);
    // Code for an architecture's own features is linked for these.
    if (status == NVJITLINK_ERROR_ARCH_MISMATCH) result = link(order, order.architecture + "a", status);
    result.lasting = true;
    return result;
}

}  // namespace smt::runtime::jit
