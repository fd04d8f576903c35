#include "runtime/profiles/waits.h"

#include "profiler/models/utilization.h"

namespace smt::runtime::profiles {

namespace models = profiler::models;

namespace {

double number(const profiler::Profile& profile, const char* name) {
    const auto found = profile.coefficients.find(name);
    return found == profile.coefficients.end() ? 0 : found->second;
}

}  // namespace

DeviceFacts facts_when_counted(const profiler::Profile& profile) {
    DeviceFacts facts;
    facts.multiprocessors = static_cast<int>(number(profile, "device.multiprocessors"));
    facts.peak = {number(profile, "counted.hertz"), number(profile, "peak.instructions_per_cycle"),
                  number(profile, "peak.requests_per_cycle")};
    facts.model = model_of(facts.peak, facts.multiprocessors);
    return facts;
}

std::optional<models::Waits> waits_of(const profiler::Profile& profile) {
    const DeviceFacts facts = facts_when_counted(profile);
    models::Memory of_scheduler = facts.model.memory;
    of_scheduler.requests_per_cycle /= facts.model.warp_schedulers;
    if (profile.counters.instructions == 0 || !profile.coefficients.contains("counted.waits.issue") ||
        of_scheduler.requests_per_cycle <= 0)
        return std::nullopt;
    if (number(profile, "counted.issue_slot_utilization") <= 0 || number(profile, "counted.occupancy") <= 0)
        return std::nullopt;
    const double memory_instructions = static_cast<double>(profile.counters.memory_instructions);
    const double sectors = static_cast<double>(profile.counters.dram_reads + profile.counters.dram_writes);
    models::Stalls stalls;
    stalls.warps = number(profile, "counted.occupancy") * kSlotsOfScheduler;
    stalls.issue = number(profile, "counted.issue_slot_utilization");
    stalls.not_selected = number(profile, "counted.waits.issue") + number(profile, "counted.waits.pipe") +
                          number(profile, "counted.waits.mio");
    size_t pipe = 0;
    for (const char* name : {"counted.pipes.alu", "counted.pipes.fma", "counted.pipes.special",
                             "counted.pipes.double", "counted.pipes.load_store", "counted.pipes.data"})
        stalls.busy[pipe++] = number(profile, name);
    stalls.memory = number(profile, "counted.waits.memory") + number(profile, "counted.waits.queue");
    stalls.memory_ratio = models::memory_ratio(profile.counters);
    stalls.requests =
        memory_instructions > 0 ? sectors * kSectorBytes / kRequestBytes / memory_instructions : 0;
    return models::waits(stalls, of_scheduler);
}

}  // namespace smt::runtime::profiles
