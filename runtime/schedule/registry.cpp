#include <fmt/format.h>

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

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name) {
    for (const Entry& each : kPolicies) {
        if (each.name == name) return each.make();
    }
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
    std::vector<std::string_view> choices;
    for (const Entry& each : kPolicies) {
        if (each.name == name) return "";
        choices.push_back(each.name);
    }
    return fmt::format("there is no policy '{}'; {} can be chosen", name, fmt::join(choices, ", "));
}

}  // namespace smt::runtime::schedule
