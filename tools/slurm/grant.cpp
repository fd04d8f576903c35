#include "tools/slurm/grant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "runtime/settings/table.h"

namespace smt::slurm {

namespace {

// The words of Site::take(), and what they set.
struct Word {
    std::string_view name;
    std::string Site::* member;
};
constexpr Word kWords[] = {{"command", &Site::command},
                           {"folder", &Site::folder},
                           {"accounts", &Site::accounts},
                           {"most_priority", &Site::most_priority},
                           {"gpu", &Site::gpu}};

}  // namespace

std::string Site::take(std::string_view word) {
    const size_t sign = word.find('=');
    const std::string_view name = word.substr(0, sign);
    const std::string_view value =
        sign == std::string_view::npos ? std::string_view() : word.substr(sign + 1);
    if (name == "env") {  // env=NAME=VALUE
        const size_t second = value.find('=');
        if (second == 0 || second == std::string_view::npos)
            return fmt::format("{}: env=NAME=VALUE sets a variable", word);
        variables.emplace_back(value.substr(0, second), value.substr(second + 1));
        return {};
    }
    if (value.empty()) return fmt::format("{}: no value", word);
    if (name == "memory_per_share")
        return settings::read_number(value, 1, UINT64_MAX, &memory_per_share)
                   ? ""
                   : fmt::format("{}: wants a size such as 800M", word);
    if (name == "most_priority" && !priority_of(value))
        return fmt::format("{}: wants high, normal or low", word);
    for (const Word& each : kWords) {
        if (each.name != name) continue;
        this->*each.member = value;
        return {};
    }
    return fmt::format("{}: there is no such word", word);
}

std::string Site::lines() const {
    std::string all;
    for (const auto& [name, value] : variables) all += fmt::format("{}={}\n", name, value);
    return all;
}

std::string Grant::refusal(const Site& site) const {
    const std::optional<int> wanted = priority_of(priority.empty() ? site.most_priority : priority);
    if (!wanted) return fmt::format("--smt-priority={}: wants high, normal or low", priority);
    if (*wanted > *priority_of(site.most_priority))
        return fmt::format("--smt-priority={}: {} is the most that this cluster grants", priority,
                           site.most_priority);
    uint32_t weight = 0;
    if (!settings::read_weight(std::to_string(shares), &weight))
        return fmt::format("--gres=smt:{}: 1000 shares are the most", shares);
    if (site.memory_per_share > UINT64_MAX / std::max<uint64_t>(1, shares))
        return fmt::format("--gres=smt:{}: that is more memory than a number holds", shares);
    return {};
}

std::vector<std::string> Grant::command(const Site& site) const {
    std::vector<std::string> words = {
        site.command, "run", "--env", "--tenant", tenant_of(job), "--weight", std::to_string(shares)};
    const auto add = [&](const char* option, const std::string& value) {
        words.insert(words.end(), {option, value});
    };
    add("--priority", !priority.empty() ? priority : site.most_priority == "low" ? "low" : "normal");
    if (site.memory_per_share != 0) add("--memory", std::to_string(shares * site.memory_per_share));
    if (!site.gpu.empty()) add("--gpu", site.gpu);
    return words;
}

std::optional<int> priority_of(std::string_view name) {
    int32_t value = 0;
    const bool word = name == "high" || name == "normal" || name == "low";
    return word && settings::read_priority(name, &value) ? std::optional<int>(value) : std::nullopt;
}

std::string tenant_of(uint32_t job) { return fmt::format("job-{}", job); }

std::string variables_in(std::string_view said) {
    std::string all;
    for (size_t at = 0; at < said.size();) {
        const size_t end = std::min(said.find('\n', at), said.size());
        const std::string_view line = said.substr(at, end - at), name = line.substr(0, line.find('='));
        const bool is_name =
            !name.empty() && name.size() < line.size() &&
            std::ranges::all_of(name, [](unsigned char each) { return std::isalnum(each) || each == '_'; });
        if (is_name) all += fmt::format("{}\n", line);
        at = end + 1;
    }
    return all;
}

std::string one_line(std::string_view said) {
    std::string all;
    for (size_t at = 0; at < said.size();) {
        const size_t end = std::min(said.find('\n', at), said.size());
        if (end > at) all += fmt::format("{}{}", all.empty() ? "" : "; ", said.substr(at, end - at));
        at = end + 1;
    }
    return all;
}

bool is_list(std::string_view variable) { return variable == "LD_PRELOAD" || variable == "LD_LIBRARY_PATH"; }

uint64_t shares_in(std::string_view tres) {
    while (!tres.empty()) {
        const size_t comma = std::min(tres.find(','), tres.size());
        std::string_view item = tres.substr(0, comma);
        tres.remove_prefix(std::min(comma + 1, tres.size()));
        if (item.starts_with("gres:") || item.starts_with("gres/")) item.remove_prefix(5);
        if (!item.starts_with("smt")) continue;
        item.remove_prefix(3);
        if (item.empty()) return 1;
        if (item[0] != ':' && item[0] != '=') continue;  // another resource
        uint64_t shares = 0;
        const auto [end, error] = std::from_chars(item.data() + 1, item.data() + item.size(), shares);
        return error == std::errc() && end == item.data() + item.size() ? shares : 0;
    }
    return 0;
}

Used Used::read(std::string_view totals, std::string_view user) {
    Used used;
    for (size_t at = 0; at < totals.size();) {
        const size_t end = std::min(totals.find('\n', at), totals.size());
        const auto server = nlohmann::json::parse(totals.substr(at, end - at), nullptr, false);
        at = end + 1;
        if (!server.is_object()) continue;
        const std::string tenant = server.value("tenant", "");  // "alice/job-7" on a system's server
        if (const size_t slash = tenant.find('/');
            slash != std::string::npos && std::string_view(tenant).substr(0, slash) != user)
            continue;
        used.servers.push_back(server.dump());
        if (!server.value("earlier", false) && server.value("sessions", 0) > server.value("ended", 0))
            used.over = false;
    }
    return used;
}

std::string account(uint32_t job, uint32_t user, std::time_t ended, const Used& used,
                    const std::string& problem) {
    const std::string why =
        problem.empty() ? "" : fmt::format(R"(,"problem":{})", nlohmann::json(problem).dump(-1, ' ', true));
    return fmt::format(R"({{"job":{},"uid":{},"ended":{},"used":[{}]{}}})"
                       "\n",
                       job, user, ended, fmt::join(used.servers, ","), why);
}

}  // namespace smt::slurm
