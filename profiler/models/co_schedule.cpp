#include "profiler/models/co_schedule.h"

#include <algorithm>
#include <cmath>

namespace smt::profiler::models {

namespace {

// The multiprocessor as one of its schedulers has it. With fewer warps than schedulers, some have nothing.
struct Virtual {
    Virtual(const Multiprocessor& real, int warps)
        : schedulers(std::clamp(warps, 1, real.warp_schedulers)), memory(real.memory) {
        memory.requests_per_cycle /= schedulers;
    }
    double warps_of(const KernelModel& kernel, int blocks) const {
        return static_cast<double>(blocks) * kernel.warps_per_block / schedulers;
    }
    Units in_units(const KernelModel& kernel, int blocks, int count) const {
        return {count,
                warps_of(kernel, blocks) / count,
                kernel.memory_ratio,
                kernel.uncoalesced_ratio,
                kernel.interval,
                kernel.latency,
                kernel.requests,
                kernel.pipes};
    }
    // A block is a unit, but a unit is a warp at least.
    Units in_blocks(const KernelModel& kernel, int blocks) const {
        const auto warps = static_cast<int>(std::lround(warps_of(kernel, blocks)));
        return in_units(kernel, blocks, std::clamp(warps, 1, blocks));
    }
    // Units that come closest to so many warps each.
    Units in_units_of(const KernelModel& kernel, int blocks, double warps) const {
        return in_units(kernel, blocks, std::max<int>(1, std::lround(warps_of(kernel, blocks) / warps)));
    }

    int schedulers;
    Memory memory;
};

std::optional<double> rate_alone(const KernelModel& kernel, int blocks) {
    if (kernel.rates.size() != static_cast<size_t>(kernel.most_blocks) || blocks < 1 ||
        blocks > kernel.most_blocks)
        return std::nullopt;
    return kernel.rates[static_cast<size_t>(blocks) - 1];
}

}  // namespace

double profit(const std::array<double, 2>& alone, const std::array<double, 2>& together) {
    return 1 - 1 / (together[0] / alone[0] + together[1] / alone[1]);
}

double alone(const Multiprocessor& multiprocessor, const KernelModel& kernel, int blocks) {
    const Virtual part(multiprocessor, blocks * kernel.warps_per_block);
    return part.schedulers * issued(part.memory, part.in_blocks(kernel, blocks))[0];
}

CoSchedule co_schedule(const Multiprocessor& multiprocessor, const KernelModel& first,
                       const KernelModel& second, Blocks blocks, int most_states) {
    const Virtual part(multiprocessor,
                       blocks[0] * first.warps_per_block + blocks[1] * second.warps_per_block);
    const std::array<const KernelModel*, 2> kernels{&first, &second};
    std::array<Units, 2> units{part.in_blocks(first, blocks[0]), part.in_blocks(second, blocks[1])};
    while (states_of(units[0]) * states_of(units[1]) > most_states) {
        const int larger = units[1].count > units[0].count;
        if (units[larger].count <= 1) break;
        units[larger] = part.in_units(*kernels[larger], blocks[larger], units[larger].count - 1);
    }
    CoSchedule result;
    result.blocks = blocks;
    result.together = issued(part.memory, units[0], units[1]);
    for (int i = 0; i < 2; ++i) {
        const Units all = part.in_units_of(*kernels[i], kernels[i]->most_blocks, units[i].warps);
        result.alone[i] = part.schedulers * issued(part.memory, all)[0];
        result.together[i] *= part.schedulers;
        if (const auto rate = rate_alone(*kernels[i], blocks[i]))
            result.together[i] *=
                *rate * result.alone[i] / (part.schedulers * issued(part.memory, units[i])[0]);
        result.cycles[i] = kernels[i]->instructions_per_block * blocks[i] / result.together[i];
    }
    result.profit = profit(result.alone, result.together);
    const double longer = std::max(result.cycles[0], result.cycles[1]);
    result.imbalance = longer > 0 ? std::abs(result.cycles[0] - result.cycles[1]) / longer : 0;
    return result;
}

namespace {

template <class Better>
std::optional<CoSchedule> best_of(const Multiprocessor& multiprocessor, const KernelModel& first,
                                  const KernelModel& second, std::span<const Blocks> candidates,
                                  const Better& better) {
    std::optional<CoSchedule> best;
    for (const Blocks& blocks : candidates) {
        if (blocks[0] <= 0 || blocks[1] <= 0) continue;
        const CoSchedule found = co_schedule(multiprocessor, first, second, blocks);
        if (!best || better(found, *best)) best = found;
    }
    return best;
}

}  // namespace

std::optional<CoSchedule> balanced(const Multiprocessor& multiprocessor, const KernelModel& first,
                                   const KernelModel& second, std::span<const Blocks> candidates) {
    return best_of(multiprocessor, first, second, candidates,
                   [](const CoSchedule& a, const CoSchedule& b) { return a.imbalance < b.imbalance; });
}

std::optional<CoSchedule> most_profitable(const Multiprocessor& multiprocessor, const KernelModel& first,
                                          const KernelModel& second, std::span<const Blocks> candidates) {
    return best_of(multiprocessor, first, second, candidates,
                   [](const CoSchedule& a, const CoSchedule& b) { return a.profit > b.profit; });
}

}  // namespace smt::profiler::models
