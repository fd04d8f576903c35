#include "tools/smt/kernels_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/smt/json.h"

namespace smt::tools {

namespace {

constexpr size_t kWidest = 100;  // of a kernel's name; templates have names of a page

std::string shortened(const std::string& name) {
    return name.size() <= kWidest ? name : name.substr(0, kWidest - 3) + "...";
}

}  // namespace

Treatment treatment_of(std::string_view words) {
    if (words.empty()) return {"not known", ""};
    const size_t colon = words.find(": ");
    if (colon == words.npos) return {std::string(words), ""};
    return {std::string(words.substr(0, colon)), std::string(words.substr(colon + 2))};
}

std::string KernelTable::text() const {
    std::vector<std::pair<Key, Count>> rows(rows_.begin(), rows_.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.second.launches > b.second.launches; });
    std::string text =
        fmt::format("{:<16} {:>9} {:>9}  {:<18} {}\n", "tenant", "launches", "to graphs", "how", "kernel");
    std::map<std::string, uint64_t> total;
    for (const auto& [key, count] : rows) {
        const Treatment treatment = treatment_of(key.words);
        text += fmt::format("{:<16} {:>9} {:>9}  {:<18} {}\n", key.tenant, count.launches, count.into_graphs,
                            treatment.how, shortened(key.kernel));
        if (!treatment.reason.empty()) text += fmt::format("{:<38}{}\n", "", treatment.reason);
        total[treatment.how] += count.launches;
    }
    text += "\nlaunches:";
    const char* separator = " ";
    for (const auto& [how, launches] : total) {
        text += fmt::format("{}{} {}", separator, launches, how);
        separator = ", ";
    }
    return text + "\n";
}

std::string KernelTable::json() const {
    std::string text;
    for (const auto& [key, count] : rows_) {
        const Treatment treatment = treatment_of(key.words);
        text += fmt::format(
            R"({{"tenant":{},"kernel":{},"symbol":{},"how":{},"reason":{},"launches":{},"into_graphs":{}}})",
            json_string(key.tenant), json_string(key.kernel), json_string(count.symbol),
            json_string(treatment.how), json_string(treatment.reason), count.launches, count.into_graphs);
        text += "\n";
    }
    return text;
}

}  // namespace smt::tools
