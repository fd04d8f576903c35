#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

struct Entry {
    std::string_view name;
    std::unique_ptr<Policy> (*make)();
};
constexpr Entry kPolicies[] = {
    {"fifo", make_fifo},
    {"priority", make_priority},
    {"priority-whole", make_priority_whole},
    {"greedy", [] { return make_greedy(); }},
    {"hpf", [] { return make_hpf(); }},
    {"hpf-whole", [] { return make_hpf({.spatial = false}); }},
    {"fair", [] { return make_fair(); }},
    {"share", [] { return make_share(); }},
    {"slo", [] { return make_slo(); }},
    {"compact", [] { return make_compact(); }},
    {"slice", [] { return make_slice(); }},
    {"slice-paper", [] { return make_slice({.slices = true}); }},
};

// N of "hpf+N", which is for experiments and not listed: hpf as in FLEP, with N multiprocessors beyond those
// needed (6.4).
constexpr std::string_view kMoreSms = "hpf+";
std::optional<int> more_sms(std::string_view name) {
    if (!name.starts_with(kMoreSms)) return std::nullopt;
    name.remove_prefix(kMoreSms.size());
    uint16_t more = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), more);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    return more;
}

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name) {
    for (const Entry& each : kPolicies) {
        if (each.name == name) return each.make();
    }
    if (const auto more = more_sms(name))
        return make_hpf({.extra_sms = *more, .short_job = Duration::zero()});
    return nullptr;
}

std::vector<std::string> policy_names() {
    std::vector<std::string> names;
    for (const Entry& each : kPolicies) names.emplace_back(each.name);
    return names;
}

Decision study_and_decide(Policy& policy, const Snapshot& snapshot, TimePoint now) {
    while (std::unique_ptr<Study> study = policy.study(snapshot)) {
        study->run();
        policy.learn(std::move(study));
    }
    return policy.decide(snapshot, now);
}

std::string policy_problem(std::string_view name) {
    if (more_sms(name)) return "";
    std::vector<std::string_view> choices;
    for (const Entry& each : kPolicies) {
        if (each.name == name) return "";
        choices.push_back(each.name);
    }
    return fmt::format("there is no policy '{}'; {} can be chosen", name, fmt::join(choices, ", "));
}

}  // namespace smt::runtime::schedule
