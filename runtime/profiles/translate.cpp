#include "runtime/profiles/translate.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <string>

#include "runtime/jit/digest.h"
#include "runtime/profiles/waits.h"

namespace smt::runtime::profiles {

namespace models = profiler::models;
using profiler::Placement;
using profiler::Times;

namespace {

double each_block(const Times& times) {
    return static_cast<double>(times.nanoseconds) / static_cast<double>(times.blocks);
}
bool measured(const Times& times) { return times.blocks > 0 && times.nanoseconds > 0; }

// With what was learnt where nothing was measured.
profiler::Profile completed(const profiler::Profile& profile) {
    profiler::Profile all = profile;
    all.times.insert(profile.learnt_times.begin(), profile.learnt_times.end());
    all.beside.insert(profile.learnt_beside.begin(), profile.learnt_beside.end());
    return all;
}

// Whether the saturation is by points of which one was not measured.
bool saturation_learnt(const profiler::Profile& profile, int multiprocessors) {
    return std::ranges::any_of(profile.learnt_times, [&](const auto& each) {
        const Placement& place = each.first;
        return (place.sms == 1 || place.sms == multiprocessors) && !profile.times.contains(place);
    });
}

std::vector<models::Configuration> curve(const profiler::Profile& profile, int multiprocessors,
                                         double blocks) {
    std::vector<models::Configuration> points;
    for (const auto& [place, times] : profile.times) {  // by CTAs, ascending
        if (place.sms == multiprocessors && place.ctas_per_sm > 0 && measured(times))
            points.push_back({static_cast<int>(place.ctas_per_sm), each_block(times) * blocks});
    }
    return points.size() < 2 ? std::vector<models::Configuration>{} : points;
}

std::optional<models::Footprint> saturation(const profiler::Profile& profile, int multiprocessors) {
    std::vector<models::SaturationPoint> points;
    for (const auto& [place, times] : profile.times) {
        const auto one = profile.times.find(Placement{1, place.ctas_per_sm});
        if (place.sms != multiprocessors || one == profile.times.end() || !measured(times) ||
            !measured(one->second))
            continue;
        points.push_back(
            {static_cast<int>(place.ctas_per_sm), 1 / each_block(one->second), 1 / each_block(times)});
    }
    return models::footprint(points, multiprocessors, kSaturationLoss);
}

// ns of a block alone, with all the CTAs that fit; nothing: they were not measured, whatever was with fewer.
std::optional<double> alone_ns(const profiler::Profile& profile, int multiprocessors) {
    if (!profile.resources) return block_ns(profile, multiprocessors);
    const auto found = profile.times.find(Placement{multiprocessors, profile.resources->most_ctas_per_sm});
    return found != profile.times.end() && measured(found->second) ? std::optional(each_block(found->second))
                                                                   : std::nullopt;
}

std::vector<schedule::Beside> rates(const profiler::Profile& profile, int multiprocessors) {
    const std::optional<double> alone = alone_ns(profile, multiprocessors);
    if (!alone) return {};
    std::vector<schedule::Beside> rates;
    for (const auto& [company, time] : profile.beside) {
        if (time.blocks <= 0 || time.nanoseconds <= 0 || company.ctas_per_sm < 1 ||
            company.other_ctas_per_sm < 1)
            continue;
        const double rate = *alone * static_cast<double>(time.blocks) / static_cast<double>(time.nanoseconds);
        rates.push_back({identity_of(company.other), static_cast<int>(company.ctas_per_sm),
                         static_cast<int>(company.other_ctas_per_sm), rate, false});
    }
    return rates;
}

bool counted(const profiler::Profile& profile) {
    return profile.counters.instructions > 0 && profile.counters.blocks > 0;
}

}  // namespace

models::Peak peak_of(const profiler::Profile& profile, const DeviceFacts& facts) {
    models::Peak peak = facts.peak;
    const auto clock = profile.coefficients.find("counted.hertz");
    if (clock == profile.coefficients.end() || clock->second <= 0) return peak;
    if (peak.hertz > 0)
        peak.requests_per_cycle *= peak.hertz / clock->second;  // the memory's clock is its own
    peak.hertz = clock->second;
    return peak;
}

uint64_t identity_of(const profiler::Key& key) {
    const std::string digest =
        jit::digest({key.kernel, key.image, std::to_string(key.block[0]), std::to_string(key.block[1]),
                     std::to_string(key.block[2]), std::to_string(key.grid_class)});
    uint64_t identity = 0;
    std::from_chars(digest.data(), digest.data() + 16, identity, 16);
    return std::max<uint64_t>(identity, 1);
}

std::optional<double> block_ns(const profiler::Profile& profile, int multiprocessors) {
    std::optional<double> found;
    for (const auto& [place, times] : profile.times) {  // by CTAs, ascending
        if (place.sms == multiprocessors && measured(times)) found = each_block(times);
    }
    return found;
}

schedule::Profile translate(const profiler::Profile& profile, const std::vector<profiler::Profile>& of_shape,
                            const DeviceFacts& facts) {
    schedule::Profile known;
    known.identity = identity_of(profile.key);
    const profiler::Profile all = completed(profile);
    known.beside = rates(all, facts.multiprocessors);
    for (schedule::Beside& each : known.beside)
        each.learnt = std::ranges::none_of(profile.beside, [&](const auto& one) {
            return one.first.ctas_per_sm == each.ctas_per_sm &&
                   one.first.other_ctas_per_sm == each.other_ctas_per_sm &&
                   identity_of(one.first.other) == each.other;
        });
    for (const auto& [place, times] : all.times)
        if (measured(times))
            known.timed.push_back({static_cast<int>(place.sms), static_cast<int>(place.ctas_per_sm)});
    known.blocks = uint64_t{1} << std::clamp<int64_t>(profile.key.grid_class, 0, 62);
    known.by_ctas = curve(all, facts.multiprocessors, static_cast<double>(known.blocks));
    known.configurations = models::prune(known.by_ctas);
    known.footprint = saturation(all, facts.multiprocessors);
    known.footprint_learnt = known.footprint && saturation_learnt(profile, facts.multiprocessors);
    if (profile.preemption.stops > 0)
        known.preemption =
            std::chrono::nanoseconds(profile.preemption.nanoseconds / profile.preemption.stops);
    if (profile.slicing.slices > 0)
        known.slice_overhead = std::chrono::nanoseconds(profile.slicing.nanoseconds / profile.slicing.slices);
    const profiler::Profile* source = &profile;
    for (const profiler::Profile& other : of_shape) {
        if (!counted(*source) && counted(other)) source = &other;
    }
    if (!counted(*source)) return known;
    const models::Counters& counters = source->counters;
    known.mix = schedule::Mix{models::utilization(counters, peak_of(*source, facts)),
                              models::memory_ratio(counters), models::uncoalesced_ratio(counters),
                              models::instructions_per_block(counters), waits_of(*source)};
    return known;
}

}  // namespace smt::runtime::profiles
