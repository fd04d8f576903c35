#include "runtime/jit/worker/assembler.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runtime/jit/worker/toolkit.h"
#include "runtime/protocol/environment.h"

namespace smt::runtime::jit {

Assembler::Assembler() {
    for (const std::string& path : library_paths("libnvJitLink.so.13", environment::kNvJitLink)) {
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
    return find(create_, "nvJitLinkCreate") && find(destroy_, "nvJitLinkDestroy") && find(add_, "nvJitLinkAddData") &&
           find(complete_, "nvJitLinkComplete") && find(cubin_size_, "nvJitLinkGetLinkedCubinSize") &&
           find(cubin_, "nvJitLinkGetLinkedCubin") && find(log_size_, "nvJitLinkGetErrorLogSize") &&
           find(log_, "nvJitLinkGetErrorLog");
}

std::string Assembler::log_of(nvJitLinkHandle link) const {
    size_t bytes = 0;
    if (log_size_(link, &bytes) != NVJITLINK_SUCCESS || bytes <= 1) return "";
    std::string log(bytes, '\0');
    log_(link, log.data());
    return log.substr(0, log.find_first_of(std::string_view("\n\0", 2)));
}

std::string Assembler::assemble(const std::string& ptx, const std::string& architecture, std::string& reason) const {
    reason = problem_;
    if (!reason.empty()) return "";
    const std::string option = "-arch=" + architecture;
    const char* options[] = {option.c_str()};
    nvJitLinkHandle link = nullptr;
    nvJitLinkResult status = create_(&link, 1, options);
    if (status != NVJITLINK_SUCCESS) return reason = fmt::format("nvJitLink: error {} for {}", int{status}, architecture), "";
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

}  // namespace smt::runtime::jit
