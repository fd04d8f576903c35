// Rows of profiles as a table and as JSON (profile_rows.h).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "tools/smt/profile_rows.h"

namespace smt::tools {

namespace models = profiler::models;

namespace {

constexpr size_t kLongestName = 40;

struct Column {
    const char* title;
    std::function<std::string(const ProfileRow&)> text;  // empty: not known
};

std::string ns(std::optional<double> value) {
    if (!value) return "";
    if (*value < 1e4) return fmt::format("{:.0f} ns", *value);
    return *value < 1e7 ? fmt::format("{:.1f} us", *value / 1e3) : fmt::format("{:.1f} ms", *value / 1e6);
}

std::string percentage(std::optional<double> value) {
    return value ? fmt::format("{:.0f} %", *value * 100) : "";
}
std::string ratio(bool known, double value) { return known ? fmt::format("{:.3f}", value) : ""; }

const std::vector<Column>& columns() {
    static const std::vector<Column> all = {
        {"kernel",
         [](const ProfileRow& row) {
             return row.name.size() > kLongestName ? row.name.substr(0, kLongestName - 2) + ".." : row.name;
         }},
        {"block",
         [](const ProfileRow& row) { return fmt::format("{}", fmt::join(row.profile->key.block, "x")); }},
        {"blocks", [](const ProfileRow& row) { return fmt::format("2^{}", row.profile->key.grid_class); }},
        {"regs",
         [](const ProfileRow& row) {
             return row.profile->resources ? std::to_string(row.profile->resources->registers) : "";
         }},
        {"shared",
         [](const ProfileRow& row) {
             return row.profile->resources ? std::to_string(row.profile->resources->static_shared_bytes +
                                                            row.profile->resources->dynamic_shared_bytes)
                                           : "";
         }},
        {"CTAs",
         [](const ProfileRow& row) {
             return row.profile->resources ? std::to_string(row.profile->resources->most_ctas_per_sm) : "";
         }},
        {"launch", [](const ProfileRow& row) { return ns(row.launch_ns); }},
        {"PUR",
         [](const ProfileRow& row) {
             return ratio(row.utilization.has_value(), row.utilization ? row.utilization->pur : 0);
         }},
        {"MUR",
         [](const ProfileRow& row) {
             return ratio(row.utilization.has_value(), row.utilization ? row.utilization->mur : 0);
         }},
        {"R_m", [](const ProfileRow& row) { return ratio(row.utilization.has_value(), row.memory_ratio); }},
        {"uncoal.",
         [](const ProfileRow& row) { return ratio(row.utilization.has_value(), row.uncoalesced_ratio); }},
        {"issue", [](const ProfileRow& row) { return percentage(row.issue_slots); }},
        {"occup.", [](const ProfileRow& row) { return percentage(row.occupancy); }},
        {"IPC", [](const ProfileRow& row) { return row.ipc ? fmt::format("{:.2f}", *row.ipc) : ""; }},
        {"model",
         [](const ProfileRow& row) {
             return row.predicted_ipc ? fmt::format("{:.2f}", *row.predicted_ipc) : "";
         }},
        {"told",
         [](const ProfileRow& row) { return row.told_ipc ? fmt::format("{:.2f}", *row.told_ipc) : ""; }},
        {"saturates",
         [](const ProfileRow& row) {
             if (!row.saturation) return std::string();
             return fmt::format("{} x {}{}", row.saturation->sms, row.saturation->ctas_per_sm,
                                row.known.footprint_learnt ? " (learnt)" : "");
         }},
        {"stop", [](const ProfileRow& row) { return ns(row.stop_ns); }},
        {"off by",
         [](const ProfileRow& row) {
             return percentage(row.long_duration_error ? row.long_duration_error : row.duration_error);
         }},
    };
    return all;
}

nlohmann::json points(const Curve& curve) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& [at, each] : curve.points) all.push_back({at, each});
    return all;
}

template <class Value>
void put(nlohmann::json& object, const char* name, const std::optional<Value>& value) {
    if (value) object[name] = *value;
}

}  // namespace

std::string table_of(const std::vector<ProfileRow>& rows) {
    std::vector<std::string> lines(rows.size() + 1);
    for (const Column& column : columns()) {
        std::vector<std::string> cells = {column.title};
        for (const ProfileRow& row : rows) cells.push_back(column.text(row));
        if (std::all_of(cells.begin() + 1, cells.end(), [](const std::string& cell) { return cell.empty(); }))
            continue;
        size_t width = 0;
        for (const std::string& cell : cells) width = std::max(width, cell.size());
        const bool name = lines.front().empty();
        for (size_t i = 0; i < cells.size(); ++i)
            lines[i] += name ? fmt::format("{:<{}}", cells[i], width)
                             : fmt::format("  {:>{}}", cells[i].empty() ? "-" : cells[i], width);
    }
    return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string json_of(const std::vector<ProfileRow>& rows) {
    nlohmann::json all = nlohmann::json::array();
    for (const ProfileRow& row : rows) {
        const profiler::Profile& profile = *row.profile;
        nlohmann::json one = {{"kernel", row.name},         {"symbol", profile.key.kernel},
                              {"image", profile.key.image}, {"device", profile.key.device},
                              {"block", profile.key.block}, {"grid_class", profile.key.grid_class},
                              {"managed", row.managed}};
        if (profile.resources) {
            one["registers"] = profile.resources->registers;
            one["shared_bytes"] =
                profile.resources->static_shared_bytes + profile.resources->dynamic_shared_bytes;
            one["most_ctas_per_sm"] = profile.resources->most_ctas_per_sm;
        }
        put(one, "launch_ns", row.launch_ns);
        put(one, "block_ns", row.block_ns);
        if (row.utilization) {
            one["pur"] = row.utilization->pur;
            one["mur"] = row.utilization->mur;
            one["memory_ratio"] = row.memory_ratio;
            one["uncoalesced_ratio"] = row.uncoalesced_ratio;
            one["counters"] = {{"blocks", profile.counters.blocks},
                               {"ns", profile.counters.nanoseconds},
                               {"instructions", profile.counters.instructions},
                               {"memory_instructions", profile.counters.memory_instructions},
                               {"dram_reads", profile.counters.dram_reads},
                               {"dram_writes", profile.counters.dram_writes}};
        }
        put(one, "issue_slot_utilization", row.issue_slots);
        put(one, "occupancy", row.occupancy);
        put(one, "l2_bytes_per_block", row.l2_bytes_per_block);
        put(one, "ipc", row.ipc);
        put(one, "predicted_ipc", row.predicted_ipc);
        put(one, "told_ipc", row.told_ipc);
        for (const auto& [name, value] : profile.coefficients) {
            if (name.starts_with("counted.pipes."))
                one["pipes"][name.substr(sizeof "counted.pipes." - 1)] = value;
            if (name.starts_with("counted.waits."))
                one["waits"][name.substr(sizeof "counted.waits." - 1)] = value;
        }
        if (row.saturation)
            one["saturation"] = {{"sms", row.saturation->sms},
                                 {"ctas_per_sm", row.saturation->ctas_per_sm},
                                 {"learnt", row.known.footprint_learnt}};
        put(one, "stop_ns", row.stop_ns);
        put(one, "predicted_stop_ns", row.predicted_stop_ns);
        one["stops"] = profile.preemption.stops;
        one["slices"] = profile.slicing.slices;
        if (profile.slicing.slices > 0)
            one["slice_ns"] = profile.slicing.nanoseconds / profile.slicing.slices;
        put(one, "duration_error", row.duration_error);
        put(one, "duration_error_long", row.long_duration_error);
        one["block_ns_by_ctas"] = points(row.by_ctas);
        if (const auto inputs = model_inputs(profile)) {  // what the models make of the same numbers of CTAs
            for (const auto& [ctas, block_ns] : row.by_ctas.points) {
                one["predicted_ipc_by_ctas"].push_back(
                    {ctas, models::alone(inputs->multiprocessor, inputs->paper, ctas)});
                one["told_ipc_by_ctas"].push_back(
                    {ctas, models::alone(inputs->multiprocessor, inputs->told, ctas)});
            }
        }
        one["block_ns_by_sms"] = points(row.by_sms);
        all.push_back(std::move(one));
    }
    return all.dump(1) + "\n";
}

}  // namespace smt::tools
