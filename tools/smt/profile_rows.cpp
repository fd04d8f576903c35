// See profile_rows.h.
#include "tools/smt/profile_rows.h"

#include <cxxabi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

#include "profiler/models/co_schedule.h"
#include "profiler/models/duration.h"
#include "profiler/models/preemption.h"
#include "profiler/models/stalls.h"
#include "runtime/journal/printable.h"
#include "runtime/profiles/device_facts.h"
#include "runtime/profiles/translate.h"
#include "runtime/profiles/waits.h"

namespace smt::tools {

namespace models = profiler::models;
using profiler::Profile;

namespace {

constexpr int kWarp = 32;

std::optional<double> coefficient(const Profile& profile, const char* name) {
    const auto found = profile.coefficients.find(name);
    if (found == profile.coefficients.end()) return std::nullopt;
    return found->second;
}

double number(const Profile& profile, const char* name) { return coefficient(profile, name).value_or(0); }

void add_counted(const Profile& profile, const runtime::profiles::DeviceFacts& facts, ProfileRow& row) {
    if (profile.counters.instructions == 0) return;
    row.utilization = models::utilization(profile.counters, facts.peak);
    row.memory_ratio = models::memory_ratio(profile.counters);
    row.uncoalesced_ratio = models::uncoalesced_ratio(profile.counters);
    row.issue_slots = coefficient(profile, "counted.issue_slot_utilization");
    row.occupancy = coefficient(profile, "counted.occupancy");
    row.l2_bytes_per_block = coefficient(profile, "counted.l2_bytes_per_block");
    if (facts.multiprocessors > 0) row.ipc = number(profile, "counted.ipc") / facts.multiprocessors;
    if (const auto inputs = model_inputs(profile)) {
        row.predicted_ipc = models::alone(inputs->multiprocessor, inputs->paper, inputs->paper.most_blocks);
        // Between the two numbers of CTAs that it lies between, and of the cycles in which there were any.
        const auto alone = [&](double ctas) {
            return models::alone(inputs->multiprocessor, inputs->told, static_cast<int>(ctas));
        };
        const double fewer = std::floor(inputs->resident);
        const double while_there =
            std::lerp(alone(fewer), alone(std::ceil(inputs->resident)), inputs->resident - fewer);
        row.told_ipc = while_there * coefficient(profile, "counted.active").value_or(1);
    }
}

void add_curves(const Profile& profile, ProfileRow& row) {
    int64_t most = 0;
    for (const auto& [place, times] : profile.times) most = std::max(most, place.ctas_per_sm);
    for (const auto& [place, times] : profile.times) {
        if (times.blocks <= 0) continue;
        const double each = static_cast<double>(times.nanoseconds) / static_cast<double>(times.blocks);
        if (place.sms == row.multiprocessors)
            row.by_ctas.points.emplace_back(static_cast<int>(place.ctas_per_sm), each);
        if (place.ctas_per_sm == most) row.by_sms.points.emplace_back(static_cast<int>(place.sms), each);
    }
    if (row.by_ctas.points.size() < 2) row.by_ctas.points.clear();
    if (row.by_sms.points.size() < 2) row.by_sms.points.clear();
}

ProfileRow row_of(const Profile& profile) {
    ProfileRow row;
    row.profile = &profile;
    row.name = short_name(profile.key.kernel);
    const runtime::profiles::DeviceFacts facts = runtime::profiles::facts_when_counted(profile);
    row.multiprocessors = facts.multiprocessors;
    row.managed = number(profile, "managed") != 0;
    row.block_ns = runtime::profiles::block_ns(profile, row.multiprocessors);
    for (const auto& [place, times] : profile.times) {  // the last one has the most CTAs
        if (place.sms == row.multiprocessors && times.launches > 0)
            row.launch_ns = static_cast<double>(times.nanoseconds) / static_cast<double>(times.launches);
    }
    add_counted(profile, facts, row);
    add_curves(profile, row);
    row.known = runtime::profiles::translate(profile, {}, facts);
    row.saturation = row.known.footprint;
    if (row.known.preemption) row.stop_ns = static_cast<double>(row.known.preemption->count());
    if (row.managed && row.block_ns && profile.resources)
        row.predicted_stop_ns = models::stop_ns(
            {*row.block_ns, row.multiprocessors, static_cast<int>(profile.resources->most_ctas_per_sm)});
    row.duration_error = coefficient(profile, "duration.held_out_error");
    row.long_duration_error = coefficient(profile, "duration.held_out_error_long");
    return row;
}

// Of whole launches with all that fits, their mean; nothing: there were none.
std::optional<models::TimedLaunch> whole_launch(const Profile& profile) {
    const int sms = static_cast<int>(number(profile, "device.multiprocessors"));
    const profiler::Times* whole = nullptr;
    for (const auto& [place, times] : profile.times) {  // by CTAs, ascending
        if (place.sms == sms && times.launches > 0) whole = &times;
    }
    if (!whole) return std::nullopt;
    const auto launches = static_cast<double>(whole->launches);
    const auto& block = profile.key.block;
    const double shared = profile.resources ? static_cast<double>(profile.resources->dynamic_shared_bytes +
                                                                  profile.resources->static_shared_bytes)
                                            : 0;
    return models::TimedLaunch{
        {static_cast<double>(whole->blocks) / launches, static_cast<double>(block[0] * block[1] * block[2]),
         static_cast<double>(whole->input_bytes) / launches, shared},
        static_cast<double>(whole->nanoseconds) / launches};
}

// Of a launch of a few microseconds nearly all is what every launch takes, and next to a line through much
// longer ones it is far off by any measure that is a part of itself. So: held_out_error(), of launches of 100
// us and more; each is predicted from all others.
std::optional<double> held_out_error_of_long(const std::vector<models::TimedLaunch>& rows) {
    constexpr double kLongNs = 100'000;
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < rows.size() && rows.size() > 1; ++i) {
        if (rows[i].nanoseconds < kLongNs) continue;
        std::vector<models::TimedLaunch> others = rows;
        others.erase(others.begin() + static_cast<ptrdiff_t>(i));
        sum += std::abs(models::fit(others).predict(rows[i].launch) / rows[i].nanoseconds - 1);
        ++count;
    }
    if (count == 0) return std::nullopt;
    return sum / count;
}

}  // namespace

std::optional<ModelInputs> model_inputs(const Profile& profile) {
    const runtime::profiles::DeviceFacts facts = runtime::profiles::facts_when_counted(profile);
    const int ctas = static_cast<int>(number(profile, "counted.ctas_per_sm"));
    if (profile.counters.instructions == 0 || ctas < 1 || facts.model.memory.requests_per_cycle <= 0)
        return std::nullopt;
    const auto& block = profile.key.block;
    ModelInputs inputs;
    inputs.multiprocessor = facts.model;
    inputs.paper.warps_per_block = static_cast<int>((block[0] * block[1] * block[2] + kWarp - 1) / kWarp);
    inputs.paper.most_blocks = ctas;
    inputs.paper.memory_ratio = models::memory_ratio(profile.counters);
    inputs.paper.uncoalesced_ratio = models::uncoalesced_ratio(profile.counters);
    inputs.paper.instructions_per_block = models::instructions_per_block(profile.counters);
    inputs.told = inputs.paper;
    if (const auto waits = runtime::profiles::waits_of(profile)) models::tell(*waits, inputs.told);
    inputs.told.rates =
        models::relative_throughput(runtime::profiles::translate(profile, {}, facts).by_ctas, ctas);
    const double warps = number(profile, "counted.occupancy") * runtime::profiles::kSlotsOfScheduler *
                         inputs.multiprocessor.warp_schedulers;
    inputs.resident = std::clamp(warps / inputs.paper.warps_per_block, 1.0, static_cast<double>(ctas));
    return inputs;
}

std::string short_name(const std::string& symbol) {
    int status = 0;
    char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    std::string name = runtime::journal::printable(status == 0 && text ? text : symbol);
    std::free(text);
    if (status != 0) return name;
    // The parameters: what stands in the last parentheses, outside of which no template is open.
    int angles = 0;
    size_t begin = 0;
    for (size_t at = 0; at < name.size(); ++at) {
        if (name[at] == '<') ++angles;
        if (name[at] == '>') --angles;
        if (angles == 0 && name[at] == ' ') begin = at + 1;
        if (angles == 0 && name[at] == '(' && name.compare(at, 21, "(anonymous namespace)") != 0)
            return name.substr(begin, at - begin);
        if (angles == 0 && name[at] == '(') at += 20;
    }
    return name;
}

std::vector<ProfileRow> rows_of(const std::vector<Profile>& profiles) {
    std::vector<ProfileRow> rows;
    for (const Profile& profile : profiles) rows.push_back(row_of(profile));
    return rows;
}

std::vector<Profile> fitted_durations(const std::vector<Profile>& profiles) {
    std::map<std::tuple<std::string, std::string, std::string, std::array<int64_t, 3>>,
             std::vector<const Profile*>>
        groups;
    for (const Profile& profile : profiles)
        groups[{profile.key.kernel, profile.key.image, profile.key.device, profile.key.block}].push_back(
            &profile);
    std::vector<Profile> news;
    for (const auto& [key, group] : groups) {
        std::vector<models::TimedLaunch> rows;
        for (const Profile* profile : group) {
            if (const auto row = whole_launch(*profile)) rows.push_back(*row);
        }
        const std::optional<double> error = models::held_out_error(rows);
        if (!error) continue;
        const models::Duration model = models::fit(rows);
        for (const Profile* profile : group) {
            Profile fitted;
            fitted.key = profile->key;
            fitted.coefficients = {{"duration.block_ns", model.block_ns},
                                   {"duration.intercept_ns", model.intercept_ns},
                                   {"duration.ns_per_block", model.ns_per[0]},
                                   {"duration.ns_per_thread", model.ns_per[1]},
                                   {"duration.ns_per_input_byte", model.ns_per[2]},
                                   {"duration.ns_per_shared_byte", model.ns_per[3]},
                                   {"duration.held_out_error", *error},
                                   {"duration.sizes", static_cast<double>(rows.size())}};
            if (const auto of_long = held_out_error_of_long(rows))
                fitted.coefficients["duration.held_out_error_long"] = *of_long;
            news.push_back(std::move(fitted));
        }
    }
    return news;
}

}  // namespace smt::tools
