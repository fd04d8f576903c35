#include "runtime/jit/settings.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/protocol/environment.h"

namespace smt::runtime::jit {

namespace {

std::string text(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

uint64_t number(const char* name, uint64_t least, uint64_t most, uint64_t otherwise) {
    const std::string value = text(name);
    if (value.empty() || value[0] == '-') return otherwise;
    char* end = nullptr;
    uint64_t result = std::strtoull(value.c_str(), &end, 10);
    static constexpr char kUnits[] = "KMGT";
    if (const char* unit = *end ? std::strchr(kUnits, *end) : nullptr) {
        result <<= 10 * (unit - kUnits + 1);
        ++end;
    }
    return *end == 0 && result >= least && result <= most ? result : otherwise;
}

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
    settings.time = std::chrono::seconds(number(kCompileSeconds, 1, kCompileSecondsMax, kCompileSecondsDefault));
    settings.memory_bytes = number(kCompileMemory, 0, ~0ull, kCompileMemoryDefault);
    settings.wait = std::chrono::seconds(number(kCompileWait, 0, kCompileWaitMax, kCompileWaitDefault));
    settings.ptx = number(kPtx, 0, 1, 1) != 0;
    settings.ptx_bytes = number(kPtxSize, 0, kPtxSizeMax, kPtxSizeDefault);
    settings.cache_folder = cache_folder();
    settings.cache_bytes = number(kCacheSize, 0, ~0ull, kCacheSizeDefault);
    return settings;
}

}  // namespace smt::runtime::jit
