// What was measured of each two kernels side by side, and what the Markov model says (profile_rows.h): smt
// profile pairs, smt profile --pair.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/smt/profile_rows.h"

namespace smt::tools {

namespace models = profiler::models;

namespace {

int half(int ctas) { return std::max(1, ctas / 2); }

nlohmann::json object_of(const models::CoSchedule& found) {
    return {{"alone", found.alone}, {"together", found.together}, {"profit", found.profit}};
}

nlohmann::json name_of(const ProfileRow& row) {
    const profiler::Key& key = row.profile->key;
    return {{"kernel", row.name},
            {"symbol", key.kernel},
            {"image", key.image},
            {"block", key.block},
            {"grid_class", key.grid_class}};
}

bool learnt(const ProfileRow& first, const ProfileRow& second, const models::CoSchedule& together) {
    return std::ranges::any_of(first.known.beside, [&](const runtime::schedule::Beside& each) {
        return each.learnt && each.other == second.known.identity && each.ctas_per_sm == together.blocks[0] &&
               each.other_ctas_per_sm == together.blocks[1];
    });
}

// Nothing: they are of two devices, or not measured together.
std::vector<models::CoSchedule> measured(const ProfileRow& first, const ProfileRow& second) {
    if (first.profile->key.device != second.profile->key.device) return {};
    return runtime::schedule::measured_together(first.known, second.known);
}

void add_models(PairRow& pair, const ModelInputs& first, const ModelInputs& second) {
    const models::Blocks blocks{half(first.paper.most_blocks), half(second.paper.most_blocks)};
    pair.paper = models::co_schedule(first.multiprocessor, first.paper, second.paper, blocks);
    pair.told = models::co_schedule(first.multiprocessor, first.told, second.told, blocks);
}

std::string profit_text(const std::optional<double>& part) {
    return part ? fmt::format("{:.1f}%", 100 * *part) : "-";
}

std::string refusal(const MeasuredRow& row) {
    return row.refused ? fmt::format("  refused: that would take {:.0f} % of the {}", 100 * row.refused->busy,
                                     row.refused->pipe)
                       : "";
}

}  // namespace

std::vector<MeasuredRow> measured_of(const std::vector<ProfileRow>& rows) {
    std::vector<MeasuredRow> all;
    for (size_t i = 0; i < rows.size(); ++i) {
        for (size_t j = i; j < rows.size(); ++j) {
            const auto first = model_inputs(*rows[i].profile), second = model_inputs(*rows[j].profile);
            for (const models::CoSchedule& each : measured(rows[i], rows[j])) {
                MeasuredRow row{
                    .first = &rows[i],
                    .second = &rows[j],
                    .measured = each,
                    .learnt = learnt(rows[i], rows[j], each),
                    .paper = {},
                    .told = {},
                    .refused = runtime::schedule::beyond_pipe(rows[i].known, rows[j].known, each)};
                if (first && second) {
                    row.paper =
                        models::co_schedule(first->multiprocessor, first->paper, second->paper, each.blocks)
                            .profit;
                    row.told =
                        models::co_schedule(first->multiprocessor, first->told, second->told, each.blocks)
                            .profit;
                }
                all.push_back(row);
            }
        }
    }
    return all;
}

std::string table_of(const std::vector<MeasuredRow>& rows) {
    std::string text = fmt::format("{:<28} {:<28} {:>7} {:>15} {:>9} {:>7} {:>7}\n", "kernel", "beside",
                                   "CTAs", "of rates alone", "measured", "R_m", "told");
    for (const MeasuredRow& row : rows) {
        const models::CoSchedule& measured = row.measured;
        text += fmt::format("{:<28.28} {:<28.28} {:>3} {:>3} {:>7.3f} {:>7.3f} {:>9} {:>7} {:>7}{}\n",
                            row.first->name, row.second->name, measured.blocks[0], measured.blocks[1],
                            measured.together[0], measured.together[1], profit_text(measured.profit),
                            profit_text(row.paper), profit_text(row.told),
                            (row.learnt ? "  learnt" : "") + refusal(row));
    }
    return text +
           "The last three: the time that is saved over one after the other, as measured, and by the model "
           "that knows R_m, and the one that is told of waits and times alone, by which slice goes where "
           "nothing was measured.\n";
}

std::string json_of(const std::vector<MeasuredRow>& rows) {
    nlohmann::json all = nlohmann::json::array();
    for (const MeasuredRow& row : rows) {
        nlohmann::json one = {{"first", name_of(*row.first)},
                              {"second", name_of(*row.second)},
                              {"blocks", row.measured.blocks},
                              {"rates", row.measured.together},
                              {"profit", row.measured.profit}};
        if (row.learnt) one["learnt"] = true;
        if (row.paper) one["paper"] = *row.paper;
        if (row.told) one["told"] = *row.told;
        if (row.refused) one["refused"] = {{"pipe", row.refused->pipe}, {"busy", row.refused->busy}};
        all.push_back(std::move(one));
    }
    return all.dump(1) + "\n";
}

std::vector<PairRow> pairs_of(const std::vector<ProfileRow>& rows) {
    std::vector<PairRow> pairs;
    for (size_t i = 0; i < rows.size(); ++i) {
        const auto first = model_inputs(*rows[i].profile);
        for (size_t j = i; j < rows.size(); ++j) {
            const auto second = model_inputs(*rows[j].profile);
            PairRow pair;
            pair.first = &rows[i], pair.second = &rows[j];
            for (const models::CoSchedule& each : measured(rows[i], rows[j])) {
                if (runtime::schedule::beyond_pipe(rows[i].known, rows[j].known, each)) continue;
                if (!pair.measured || each.profit > pair.measured->profit) pair.measured = each;
            }
            const bool counted =
                first && second && rows[i].profile->key.device == rows[j].profile->key.device;
            if (counted) add_models(pair, *first, *second);
            if (counted || pair.measured) pairs.push_back(pair);
        }
    }
    return pairs;
}

std::string table_of(const std::vector<PairRow>& pairs) {
    std::string text = fmt::format("{:<28} {:<28} {:>7} {:>13} {:>13} {:>7} {:>7} {:>15}\n", "kernel",
                                   "beside", "CTAs", "IPC alone", "together", "R_m", "told", "measured");
    const bool any = std::any_of(pairs.begin(), pairs.end(),
                                 [](const PairRow& pair) { return pair.measured.has_value(); });
    for (const PairRow& pair : pairs) {
        text += fmt::format("{:<28.28} {:<28.28} ", pair.first->name, pair.second->name);
        if (const auto& told = pair.told) {
            text +=
                fmt::format("{:>3} {:>3} {:>6.2f} {:>6.2f} {:>6.2f} {:>6.2f} {:>7} {:>7}", told->blocks[0],
                            told->blocks[1], told->alone[0], told->alone[1], told->together[0],
                            told->together[1], profit_text(pair.paper->profit), profit_text(told->profit));
        } else {
            text += fmt::format("{:>7} {:>13} {:>13} {:>7} {:>7}", "-", "-", "-", "-", "-");
        }
        const auto& best = pair.measured;
        text += fmt::format(" {:>15}\n", best ? fmt::format("{} {}: {}", best->blocks[0], best->blocks[1],
                                                            profit_text(best->profit))
                                              : "-");
    }
    text +=
        "R_m, told, measured: the time that is saved over one after the other, by the model that knows R_m, "
        "by the one that is told of waits and times alone, and as measured with the best CTAs.\n";
    return any ? text : text + "smt profile --pair -- PROGRAM -- PROGRAM measures.\n";
}

std::string json_of(const std::vector<PairRow>& pairs) {
    nlohmann::json all = nlohmann::json::array();
    for (const PairRow& pair : pairs) {
        nlohmann::json one = {{"first", name_of(*pair.first)}, {"second", name_of(*pair.second)}};
        if (pair.told) {
            one["blocks"] = pair.told->blocks;
            one["paper"] = object_of(*pair.paper);
            one["told"] = object_of(*pair.told);
        }
        if (const auto& best = pair.measured)
            one["measured"] = {{"blocks", best->blocks}, {"rates", best->together}, {"profit", best->profit}};
        all.push_back(std::move(one));
    }
    return all.dump(1) + "\n";
}

}  // namespace smt::tools
