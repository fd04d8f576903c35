#include "profiler/models/utilization.h"

#include <cmath>

namespace smt::profiler::models {

namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double ratio(int64_t part, int64_t whole) {
    return ratio(static_cast<double>(part), static_cast<double>(whole));
}

}  // namespace

Utilization utilization(const Counters& counters, const Peak& peak) {
    const double cycles = static_cast<double>(counters.nanoseconds) * 1e-9 * peak.hertz;
    const double requests =
        static_cast<double>(counters.dram_reads) + static_cast<double>(counters.dram_writes);
    return {ratio(static_cast<double>(counters.instructions), cycles * peak.instructions_per_cycle),
            ratio(requests, cycles * peak.requests_per_cycle)};
}

double memory_ratio(const Counters& counters) {
    return ratio(counters.memory_instructions, counters.instructions);
}

double uncoalesced_ratio(const Counters& counters) {
    return ratio(counters.uncoalesced_instructions, counters.memory_instructions);
}

double instructions_per_block(const Counters& counters) {
    return ratio(counters.instructions, counters.blocks);
}

bool too_alike(const Utilization& first, const Utilization& second, const PruneThresholds& threshold) {
    return std::abs(first.pur - second.pur) < threshold.pur &&
           std::abs(first.mur - second.mur) < threshold.mur;
}

}  // namespace smt::profiler::models
