// smt cache: what the compile service keeps on disk (runtime/jit/cache.h).
#include "runtime/jit/cache.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "runtime/jit/settings.h"
#include "tools/smt/command.h"

namespace smt::tools {
namespace {

using runtime::jit::Cache;

constexpr double kMiB = 1 << 20;

Cache open_cache() {
    std::string folder = runtime::jit::cache_folder();
    if (folder.empty()) throw Failure("there is no folder for it: neither SMT_CACHE_DIR nor HOME is set");
    return Cache(folder, ~0ull, [](const std::string&) {});
}

int list() {
    Cache cache = open_cache();
    uint64_t bytes = 0;
    const std::vector<Cache::File> files = cache.list();
    for (const Cache::File& file : files) {
        bytes += file.bytes;
        fmt::print("{}  {:>9}  {:%Y-%m-%d %H:%M:%S}\n", file.key.substr(0, 16), file.bytes,
                   fmt::localtime(static_cast<time_t>(file.read_ns / 1'000'000'000)));
    }
    fmt::print("{} files, {:.1f} MiB, in {}\n", files.size(), static_cast<double>(bytes) / kMiB,
               cache.folder());
    return 0;
}

int clear() {
    Cache cache = open_cache();
    fmt::print("{:.1f} MiB removed from {}\n", static_cast<double>(cache.clear()) / kMiB, cache.folder());
    return 0;
}

int run_cache(const Arguments& arguments) {
    if (arguments.size() > 1) throw Misuse("it takes one word");
    if (arguments.empty() || arguments[0] == "list") return list();
    if (arguments[0] == "clear") return clear();
    throw Misuse("unknown '" + arguments[0] + "': it is list or clear");
}

}  // namespace

const Command cache_command = {"cache", "smt cache [list | clear]",
                               "shows or removes the compiled kernels that are kept", run_cache};

}  // namespace smt::tools
