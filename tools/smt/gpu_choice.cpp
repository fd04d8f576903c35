// See gpu_choice.h.
#include "tools/smt/gpu_choice.h"

#include <cmath>
#include <tuple>

namespace smt::tools {

std::optional<size_t> choose_gpu(const std::vector<GpuLoad>& loads, uint64_t needed) {
    std::optional<size_t> best;
    const auto rank = [&](size_t i) {
        const GpuLoad& load = loads[i];
        const bool fits = load.total_bytes == 0 || load.free_bytes >= needed;
        return std::tuple(!fits, load.programs, std::lround(load.busy * 10), ~load.free_bytes, i);
    };
    for (size_t i = 0; i < loads.size(); ++i) {
        if (loads[i].total_bytes && loads[i].total_bytes < needed) continue;
        if (!best || rank(i) < rank(*best)) best = i;
    }
    return best;
}

}  // namespace smt::tools
