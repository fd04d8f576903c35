#include "profiler/collect/cupti/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <cstdlib>
#include <vector>

#include "runtime/protocol/environment.h"
#include "runtime/settings/read.h"

namespace smt::profiler::collect {

namespace {

constexpr char kFile[] = "libcupti.so.13";
constexpr uint32_t kLeast = 130000, kBeyond = 140000;  // CUPTI_API_VERSION

std::vector<std::string> matches(const std::string& pattern) {
    glob_t found{};
    std::vector<std::string> paths;
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
        paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    return paths;
}

std::vector<std::string> candidates() {
    if (const char* chosen = settings::c_text_of(settings::Id::kCupti)) return {chosen};
    std::vector<std::string> paths;
    const auto look = [&](const std::string& folder) {
        for (std::string& path : matches(folder + "/" + kFile)) paths.push_back(std::move(path));
    };
    std::vector<std::string> roots = {SMT_CUDA_ROOT, "/usr/local/cuda", "/usr/local/cuda-13*"};
    if (const char* home = std::getenv(environment::kCudaHome); home && *home)
        roots.insert(roots.begin(), home);
    for (const std::string& root : roots) {
        for (const char* folder : {"/lib64", "/lib", "/extras/CUPTI/lib64", "/targets/x86_64-linux/lib"})
            look(root + folder);
    }
    paths.push_back(kFile);
    // pip's: of the machine, of a user's environment, and of those that images of frameworks have.
    std::vector<std::string> packages = {"/usr/lib/python3*/*-packages", "/usr/local/lib/python3*/*-packages",
                                         "/opt/*/lib/python3*/site-packages",
                                         "/opt/*/.venv/lib/python3*/site-packages"};
    if (const char* own = std::getenv(environment::kVirtualEnv); own && *own)
        packages.insert(packages.begin(), std::string(own) + "/lib/python3*/site-packages");
    for (const std::string& folder : packages) {
        look(folder + "/nvidia/cu13/lib");
        look(folder + "/nvidia/cuda_cupti/lib");
    }
    return paths;
}

// True: all of it is there.
bool fill(Cupti& cupti, void* library, std::string* why) {
#define X(name)                                                                 \
    cupti.name = reinterpret_cast<decltype(cupti.name)>(dlsym(library, #name)); \
    if (!cupti.name) return *why = fmt::format("{} has no {}", cupti.path, #name), false;
    SMT_CUPTI_FUNCTIONS(X)
#undef X
    uint32_t version = 0;
    if (cupti.cuptiGetVersion(&version) != CUPTI_SUCCESS || version < kLeast || version >= kBeyond)
        return *why = fmt::format("{} is of version {}, and this smt knows 13", cupti.path, version), false;
    return true;
}

const Cupti* find(std::string* problem) {
    static Cupti cupti;
    std::string why;
    for (const std::string& path : candidates()) {
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) continue;
        cupti.path = path;
        if (fill(cupti, library, &why)) return &cupti;
        dlclose(library);
    }
    *problem = why.empty() ? fmt::format(
                                 "there is no {} in the toolkit, in pip's packages or where the loader "
                                 "looks; {} may name it",
                                 kFile, settings::variable_of(settings::Id::kCupti))
                           : why;
    return nullptr;
}

// What forbids counters, and how it is changed.
const char* remedy(CUptiResult result) {
    switch (result) {
        case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
            return "the driver lets only administrators count: its option "
                   "NVreg_RestrictProfilingToAdminUsers=0 (in /etc/modprobe.d, for "
                   "the kernel module nvidia) lets all users, CAP_SYS_ADMIN this process";
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
            return "the hypervisor forbids it: its administrator allows profiling of a virtual GPU "
                   "(enable_profiling)";
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
            return "this kind of virtual GPU has no counters";
        case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
            return "confidential computing is on, which hides them";
        case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
            return "the GPU is divided (MIG)";
        case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
            return "another profiler has it";
        case CUPTI_ERROR_HARDWARE_BUSY:
            return "another profiler is counting on this GPU";
        default:
            return "";
    }
}

}  // namespace

const Cupti* open_cupti(std::string* problem) {
    static std::string why;
    static const Cupti* const cupti = find(&why);
    if (!cupti) *problem = why;
    return cupti;
}

std::string describe(const Cupti& cupti, const char* call, CUptiResult result) {
    const char* name = nullptr;
    if (cupti.cuptiGetResultString) cupti.cuptiGetResultString(result, &name);
    const std::string what = remedy(result);
    return fmt::format("{}: {} ({}){}{}", call, name ? name : "error", static_cast<int>(result),
                       what.empty() ? "" : ": ", what);
}

bool is_final(CUptiResult result) { return *remedy(result) != 0 && result != CUPTI_ERROR_HARDWARE_BUSY; }

}  // namespace smt::profiler::collect
