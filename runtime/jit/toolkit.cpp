#include "runtime/jit/toolkit.h"

#include <unistd.h>

#include <cstdlib>

#include "runtime/protocol/environment.h"
#include "runtime/settings/read.h"

namespace smt::runtime::jit {

namespace {

std::string text(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::vector<std::string> toolkits() {
    std::vector<std::string> roots;
    if (std::string home = text(environment::kCudaHome); !home.empty()) roots.push_back(home);
    roots.push_back(SMT_CUDA_ROOT);
    roots.push_back("/usr/local/cuda");
    return roots;
}

}  // namespace

std::string find_toolkit() {
    for (const std::string& root : toolkits()) {
        if (access((root + "/include/cuda_runtime.h").c_str(), R_OK) == 0) return root;
    }
    return "";
}

std::vector<std::string> library_paths(const std::string& file, settings::Id chosen) {
    if (const std::string_view path = settings::text_of(chosen); !path.empty()) return {std::string(path)};
    std::vector<std::string> paths;
    for (const std::string& root : toolkits()) {
        for (const char* folder : {"/lib64/", "/lib/", "/targets/x86_64-linux/lib/"}) {
            const std::string path = root + folder + file;
            if (access(path.c_str(), R_OK) == 0) paths.push_back(path);
        }
    }
    paths.push_back(file);
    return paths;
}

}  // namespace smt::runtime::jit
