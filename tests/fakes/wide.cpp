// Calls that wait for all work of all streams, and keep other calls out of the driver meanwhile, as on a GPU
// (runtime/device/cuda/context_wide.h): $SMT_FAKE_WIDE lists their names with commas between.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "fake.h"

namespace fake {

namespace {

bool is_wide(const char* name) {
    static const std::string wide = [] {
        const char* given = getenv("SMT_FAKE_WIDE");
        return given ? "," + std::string(given) + "," : "";
    }();
    return !wide.empty() && wide.find("," + std::string(name) + ",") != std::string::npos;
}

bool taken = false;  // by such a call; guarded by world()

bool idle() {
    const auto streams = all_streams();
    return std::all_of(streams.begin(), streams.end(), [](const auto& each) { return each->queue.empty(); });
}

}  // namespace

void await_others(const char* name) {
    Lock lock(world());
    changed().wait(lock, [] { return !taken; });
    if (!is_wide(name)) return;
    taken = true;
    changed().wait(lock, idle);
    taken = false;
    changed().notify_all();
}

}  // namespace fake
