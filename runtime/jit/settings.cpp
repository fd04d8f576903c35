#include "runtime/jit/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/environment_number.h"

namespace smt::runtime::jit {

namespace {

std::string text(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// A program's own threads want cores too; with two, one tenant's compile need not wait for another's.
size_t default_workers() { return std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 2, environment::kCompileWorkersDefaultMost); }

}  // namespace

std::string cache_folder() {
    using namespace environment;
    if (std::string own = text(kCacheDir); !own.empty()) return own;
    if (std::string xdg = text(kXdgCacheHome); !xdg.empty()) return xdg + "/smt";
    if (std::string home = text(kHome); !home.empty()) return home + "/.cache/smt";
    return "";
}

std::string own_folder() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

Settings read_settings(const std::string& own_folder) {
    using namespace environment;
    Settings settings;
    settings.compiler = text(kCompiler);
    if (settings.compiler.empty()) settings.compiler = own_folder + "/smt-compile";
    if (access(settings.compiler.c_str(), X_OK) != 0) settings.compiler.clear();
    settings.time = std::chrono::seconds(number_of(kCompileSeconds, 1, kCompileSecondsMax, kCompileSecondsDefault));
    settings.cpu = settings.time;
    settings.workers = number_of(kCompileWorkers, 1, kCompileWorkersMax, default_workers());
    settings.memory_bytes = number_of(kCompileMemory, 0, ~0ull, kCompileMemoryDefault);
    settings.wait = std::chrono::seconds(number_of(kCompileWait, 0, kCompileWaitMax, kCompileWaitDefault));
    settings.compiles_ptx = text(kPtxCompiler) != kPtxCompilerDriver;
    settings.ptx = number_of(kPtx, 0, 1, 1) != 0;
    settings.ptx_bytes = number_of(kPtxSize, 0, kPtxSizeMax, kPtxSizeDefault);
    settings.cache_folder = cache_folder();
    settings.cache_bytes = number_of(kCacheSize, 0, ~0ull, kCacheSizeDefault);
    return settings;
}

}  // namespace smt::runtime::jit
