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

std::string gpu_ms(uint64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e6); }

double part_of_time(uint64_t ns, uint64_t all_ns) {
    return all_ns ? static_cast<double>(ns) / static_cast<double>(all_ns) : 0;
}

std::string percentage(uint64_t ns, uint64_t all_ns) {
    return fmt::format("{:.1f} %", 100 * part_of_time(ns, all_ns));
}

}  // namespace

Treatment treatment_of(std::string_view words) {
    if (words.empty()) return {"not known", ""};
    const size_t colon = words.find(": ");
    if (colon == words.npos) return {std::string(words), ""};
    return {std::string(words.substr(0, colon)), std::string(words.substr(colon + 2))};
}

bool stoppable(const Treatment& treatment) {
    return treatment.how.starts_with("managed") || treatment.how == "has a door" ||
           treatment.how == "as it is";
}

KernelTime KernelTable::Count::time() const {
    KernelTime sum;
    for (const auto& [stream, time] : times) sum += time;
    return sum;
}

std::string KernelTable::text() const {
    std::vector<std::pair<Key, Count>> rows(rows_.begin(), rows_.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
        const uint64_t first = a.second.time().ns, second = b.second.time().ns;
        return first != second ? first > second : a.second.launches > b.second.launches;
    });
    uint64_t all_ns = 0;
    for (const auto& [key, count] : rows) all_ns += count.time().ns;
    const auto times = [&](const std::string& ms, const std::string& share) {
        return timed_ ? fmt::format("  {:>10} {:>7}", ms, share) : "";
    };
    std::string text = fmt::format("{:<16} {:>9} {:>9}{}  {:<18} {}\n", "tenant", "launches", "to graphs",
                                   times("GPU ms", "share"), "how", "kernel");
    std::map<std::string, uint64_t> total;
    for (const auto& [key, count] : rows) {
        const Treatment treatment = treatment_of(key.words);
        const KernelTime time = count.time();
        text += fmt::format("{:<16} {:>9} {:>9}{}  {:<18} {}\n", key.tenant, count.launches,
                            count.into_graphs, times(gpu_ms(time.ns), percentage(time.ns, all_ns)),
                            treatment.how, shortened(key.kernel));
        if (!treatment.reason.empty())
            text += fmt::format("{:<{}}{}\n", "", timed_ ? 58 : 38, treatment.reason);
        total[treatment.how] += count.launches;
    }
    text += "\nlaunches:";
    const char* separator = " ";
    for (const auto& [how, launches] : total) {
        text += fmt::format("{}{} {}", separator, launches, how);
        separator = ", ";
    }
    return text + "\n" + shares();
}

// Which part of the GPU time is of launches that can be stopped. Estimated: the host saw when launches ended.
std::string KernelTable::shares() const {
    if (!timed_)
        return "GPU time by kernel: not known; the server estimates it with gpu_time in SMT_JOURNAL\n";
    uint64_t all = 0, within = 0, one_wave = 0;
    std::map<std::string, uint64_t> not_at_all;  // by reason
    for (const auto& [key, count] : rows_) {
        const Treatment treatment = treatment_of(key.words);
        const KernelTime time = count.time();
        all += time.ns;
        if (stoppable(treatment))
            within += time.ns - time.one_wave_ns, one_wave += time.one_wave_ns;
        else if (time.ns)
            not_at_all[treatment.reason.empty() ? treatment.how : treatment.reason] += time.ns;
    }
    uint64_t rest = 0;
    for (const auto& [reason, ns] : not_at_all) rest += ns;
    std::string text =
        fmt::format("\nGPU time, estimated from when the server saw launches end: {} ms\n", gpu_ms(all));
    const auto line = [&](uint64_t ns, const std::string& what) {
        text += fmt::format("  {:>7}  {}\n", percentage(ns, all), what);
    };
    line(within, "in launches that can be stopped between two blocks");
    line(one_wave, "in such launches whose blocks all run at once: a stop takes no effect before their end");
    line(rest, "in launches that cannot be stopped");
    std::vector<std::pair<std::string, uint64_t>> reasons(not_at_all.begin(), not_at_all.end());
    std::stable_sort(reasons.begin(), reasons.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [reason, ns] : reasons) line(ns, "  " + reason);
    return text;
}

std::string KernelTable::json() const {
    std::string text;
    uint64_t all_ns = 0;
    for (const auto& [key, count] : rows_) all_ns += count.time().ns;
    for (const auto& [key, count] : rows_) {
        const Treatment treatment = treatment_of(key.words);
        const KernelTime time = count.time();
        const std::string times =
            timed_ ? fmt::format(R"(,"gpu_ns":{},"gpu_ns_one_wave":{},"gpu_launches":{},"gpu_share":{:.4f},)"
                                 R"("stoppable":{})",
                                 time.ns, time.one_wave_ns, time.launches, part_of_time(time.ns, all_ns),
                                 stoppable(treatment))
                   : "";
        text += fmt::format(R"({{"tenant":{},"kernel":{},"symbol":{},"how":{},"reason":{},)"
                            R"("launches":{},"into_graphs":{}{}}})",
                            json_string(key.tenant), json_string(key.kernel), json_string(count.symbol),
                            json_string(treatment.how), json_string(treatment.reason), count.launches,
                            count.into_graphs, times);
        text += "\n";
    }
    return text;
}

}  // namespace smt::tools
