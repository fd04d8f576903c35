// See rules.h.
#include "tools/fleet/rules.h"

#include <algorithm>

#include "runtime/schedule/combinations.h"

namespace smt::fleet {

namespace {

using Gpus = std::vector<GpuView>;

bool fits(const GpuView& gpu, uint64_t memory) { return gpu.load.free_bytes >= memory; }

// The one with the smallest rank of those on which it fits; of equals the first.
template <class Rank>
std::optional<size_t> lowest(const Gpus& gpus, uint64_t memory, const Rank& rank) {
    std::optional<size_t> best;
    double smallest = 0;
    for (size_t i = 0; i < gpus.size(); ++i) {
        if (!fits(gpus[i], memory)) continue;
        const double mine = rank(gpus[i]);
        if (best && mine >= smallest) continue;
        best = i;
        smallest = mine;
    }
    return best;
}

std::optional<size_t> first_fit(const Gpus& gpus, const Tenant&, uint64_t memory) {
    return lowest(gpus, memory, [](const GpuView&) { return 0; });
}

std::optional<size_t> by_memory(const Gpus& gpus, const Tenant&, uint64_t memory) {
    return lowest(gpus, memory, [](const GpuView& gpu) { return -static_cast<double>(gpu.load.free_bytes); });
}

// A program that is placed where it does not fit yet waits there. Here it waits in front of all of them.
std::optional<size_t> as_any(const Gpus& gpus, const Tenant&, uint64_t memory) {
    std::vector<tools::GpuLoad> loads;
    loads.reserve(gpus.size());
    for (const GpuView& each : gpus) loads.push_back(each.load);
    const std::optional<size_t> chosen = tools::choose_gpu(loads, memory);
    return chosen && fits(gpus[*chosen], memory) ? chosen : std::nullopt;
}

std::optional<size_t> by_profile(const Gpus& gpus, const Tenant& tenant, uint64_t memory) {
    return lowest(gpus, memory, [&](const GpuView& gpu) {
        double load = 0;
        for (const Tenant* const each : gpu.tenants) load += delay_by(tenant, *each);
        return load;
    });
}

// That has most of the tenant's time.
const Profile* main_profile(const Tenant& tenant) {
    const auto most = std::ranges::max_element(tenant.streams, {}, [](const Program& each) {
        return each.alone_ns * static_cast<double>(each.launches);
    });
    return most == tenant.streams.end() ? nullptr : most->kernel.profile.get();
}

}  // namespace

double delay_by(const Tenant& tenant, const Tenant& other) {
    const Profile *const mine = main_profile(tenant), *const theirs = main_profile(other);
    if (!mine || !theirs) return other.demand();
    const std::vector<models::CoSchedule> measured = measured_together(*mine, *theirs);
    const auto best = std::ranges::max_element(measured, {}, &models::CoSchedule::profit);
    if (best == measured.end() || best->together[0] <= 0) return other.demand();
    return 1 / best->together[0] - 1;
}

const std::array<Rule, 4> kRules{
    {{"first-fit", first_fit}, {"memory", by_memory}, {"any", as_any}, {"profile", by_profile}}};

const Rule* find_rule(std::string_view name) {
    const auto* const found = std::ranges::find(kRules, name, &Rule::name);
    return found == kRules.end() ? nullptr : found;
}

}  // namespace smt::fleet
