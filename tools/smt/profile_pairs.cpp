// What the Markov model says of each two kernels side by side (profile_rows.h): smt profile pairs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/smt/profile_rows.h"

namespace smt::tools {

namespace models = profiler::models;

namespace {

int half(int ctas) { return std::max(1, ctas / 2); }

// Of the rate with all CTAs, what half of them have alone.
std::optional<double> half_rate(const ProfileRow& row, int most) {
    std::optional<double> all, some;
    for (const auto& [ctas, block_ns] : row.by_ctas.points) {
        if (ctas == most) all = block_ns;
        if (ctas == half(most)) some = block_ns;
    }
    if (!all || !some) return std::nullopt;
    return *all / *some;
}

std::optional<double> from_curves(const PairRow& pair, const models::CoSchedule& model, const std::array<double, 2>& halves, const std::array<int, 2>& most) {
    double sum = 0;
    for (size_t i = 0; i < 2; ++i) {
        const auto rate = half_rate(i ? *pair.second : *pair.first, most[i]);
        if (!rate) return std::nullopt;
        sum += *rate * model.together[i] / halves[i];
    }
    return 1 - 1 / sum;
}

nlohmann::json object_of(const models::CoSchedule& found, const std::optional<double>& from_curves) {
    nlohmann::json object = {{"alone", found.alone}, {"together", found.together}, {"profit", found.profit}};
    if (from_curves) object["profit_from_curves"] = *from_curves;
    return object;
}

nlohmann::json name_of(const ProfileRow& row) {
    const profiler::Key& key = row.profile->key;
    return {{"kernel", row.name}, {"symbol", key.kernel}, {"image", key.image}, {"block", key.block}, {"grid_class", key.grid_class}};
}

}  // namespace

std::vector<PairRow> pairs_of(const std::vector<ProfileRow>& rows) {
    std::vector<PairRow> pairs;
    for (size_t i = 0; i < rows.size(); ++i) {
        const auto first = model_inputs(*rows[i].profile);
        for (size_t j = i; first && j < rows.size(); ++j) {
            const auto second = model_inputs(*rows[j].profile);
            if (!second || rows[i].profile->key.device != rows[j].profile->key.device) continue;
            const models::Blocks blocks{half(first->paper.most_blocks), half(second->paper.most_blocks)};
            const auto alone = [&](const models::Kernel& kernel, int ctas) { return models::alone(first->multiprocessor, kernel, ctas); };
            const std::array<int, 2> most{first->paper.most_blocks, second->paper.most_blocks};
            PairRow pair{&rows[i], &rows[j], models::co_schedule(first->multiprocessor, first->paper, second->paper, blocks),
                         models::co_schedule(first->multiprocessor, first->told, second->told, blocks), {}, {}};
            pair.paper_from_curves = from_curves(pair, pair.paper, {alone(first->paper, blocks[0]), alone(second->paper, blocks[1])}, most);
            pair.told_from_curves = from_curves(pair, pair.told, {alone(first->told, blocks[0]), alone(second->told, blocks[1])}, most);
            pairs.push_back(pair);
        }
    }
    return pairs;
}

std::string table_of(const std::vector<PairRow>& pairs) {
    std::string text = fmt::format("{:<28} {:<28} {:>7} {:>13} {:>13} {:>7} {:>7}\n", "kernel", "beside", "CTAs", "IPC alone", "together", "R_m", "told");
    for (const PairRow& pair : pairs) {
        const models::CoSchedule& told = pair.told;
        text += fmt::format("{:<28.28} {:<28.28} {:>3} {:>3} {:>6.2f} {:>6.2f} {:>6.2f} {:>6.2f} {:>6.1f}% {:>6.1f}%\n", pair.first->name, pair.second->name,
                            told.blocks[0], told.blocks[1], told.alone[0], told.alone[1], told.together[0], told.together[1], 100 * pair.paper.profit,
                            100 * told.profit);
    }
    return text + "The last two: the time that is saved over one after the other, by the model that knows R_m, and by the one that is told of waits.\n";
}

std::string json_of(const std::vector<PairRow>& pairs) {
    nlohmann::json all = nlohmann::json::array();
    for (const PairRow& pair : pairs)
        all.push_back({{"first", name_of(*pair.first)}, {"second", name_of(*pair.second)}, {"blocks", pair.told.blocks},
                       {"paper", object_of(pair.paper, pair.paper_from_curves)}, {"told", object_of(pair.told, pair.told_from_curves)}});
    return all.dump(1) + "\n";
}

}  // namespace smt::tools
