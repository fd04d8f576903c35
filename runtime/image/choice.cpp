#include "runtime/image/choice.h"

#include <cstdlib>
#include <cstring>

namespace smt::image {

namespace {

// Jetson and DRIVE: their cubins and those of the desktop do not run on each other.
bool is_tegra(int architecture) {
    for (int each : {32, 53, 62, 72, 87, 101, 110})
        if (architecture == each) return true;
    return false;
}

bool is_set(const char* name) {
    const char* value = std::getenv(name);
    return value && std::strcmp(value, "1") == 0;
}

// Of one architecture the one that may use more of it.
int specialty(const Entry& entry) { return entry.variant == 'a' ? 2 : entry.variant == 'f' ? 1 : 0; }

const Entry* best(const std::vector<Entry>& entries, Kind kind, int architecture) {
    const Entry* found = nullptr;
    for (const Entry& entry : entries) {
        if (entry.kind != kind || !runs_on(entry, architecture)) continue;
        if (!found || is_better(entry, *found)) found = &entry;
    }
    return found;
}

}  // namespace

Device device_from_environment(int architecture) {
    return {architecture, !is_set("CUDA_FORCE_PTX_JIT"), !is_set("CUDA_DISABLE_PTX_JIT")};
}

bool runs_on(const Entry& entry, int architecture) {
    const bool same = entry.architecture == architecture;
    if (entry.variant == 'a' || same) return same && entry.kind != Kind::kOther;
    const bool family = entry.architecture / 10 == architecture / 10;
    const bool older = entry.architecture <= architecture;
    if (entry.kind == Kind::kPtx) return older && (family || entry.variant != 'f');
    return entry.kind == Kind::kCubin && older && family && !is_tegra(entry.architecture) &&
           !is_tegra(architecture);
}

bool is_better(const Entry& entry, const Entry& than) {
    if (entry.architecture != than.architecture) return entry.architecture > than.architecture;
    return specialty(entry) > specialty(than);
}

const Entry* best_ptx(const std::vector<Entry>& entries, int architecture) {
    return best(entries, Kind::kPtx, architecture);
}

const Entry* best_cubin(const std::vector<Entry>& entries, int architecture) {
    return best(entries, Kind::kCubin, architecture);
}

const Entry* choose(const std::vector<Entry>& entries, const Device& device) {
    const Entry* cubin = device.takes_cubins ? best_cubin(entries, device.architecture) : nullptr;
    if (cubin || !device.takes_ptx) return cubin;
    return best_ptx(entries, device.architecture);
}

}  // namespace smt::image
