#include "runtime/jit/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "install_layout.gen.h"
#include "runtime/protocol/environment.h"
#include "runtime/settings/read.h"

namespace smt::runtime::jit {

namespace {

std::string text(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// A program's own threads want cores too; with two, one tenant's compile need not wait for another's.
size_t default_workers() { return std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 2, 8); }

// In the build the worker lies beside its starters; installed, among the programs that only they start.
std::string find_worker(const std::string& own_folder) {
    const std::string beside = own_folder + "/smt-compile";
    if (access(beside.c_str(), X_OK) == 0) return beside;
    std::error_code error;
    return std::filesystem::canonical(own_folder + "/" + install_layout::kProgramsFromBin + "/smt-compile",
                                      error)
        .string();
}

}  // namespace

std::string cache_folder() {
    using namespace environment;
    if (const char* own = settings::c_text_of(settings::Id::kCacheDir)) return own;
    if (std::string xdg = text(kXdgCacheHome); !xdg.empty()) return xdg + "/smt";
    if (std::string home = text(kHome); !home.empty()) return home + "/.cache/smt";
    return "";
}

std::string own_folder() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

Settings read_settings(const std::string& own_folder) {
    using settings::Id, settings::flag_of, settings::number_of;
    Settings settings;
    settings.compiler = smt::settings::text_of(Id::kCompiler);
    if (settings.compiler.empty()) settings.compiler = find_worker(own_folder);
    if (access(settings.compiler.c_str(), X_OK) != 0) settings.compiler.clear();
    settings.time = std::chrono::seconds(number_of(Id::kCompileSeconds));
    settings.cpu = settings.time;
    settings.workers = number_of(Id::kCompileWorkers, default_workers());
    settings.memory_bytes = number_of(Id::kCompileMemory);
    settings.wait = std::chrono::seconds(number_of(Id::kCompileWait));
    settings.compiles_ptx = !smt::settings::is(Id::kPtxCompiler, "driver");
    settings.doors = flag_of(Id::kDoors);
    settings.ptx = flag_of(Id::kPtx);
    settings.inside = flag_of(Id::kInside);
    settings.ptx_bytes = number_of(Id::kPtxSize);
    settings.cache_folder = cache_folder();
    settings.cache_bytes = number_of(Id::kCacheSize);
    return settings;
}

}  // namespace smt::runtime::jit
