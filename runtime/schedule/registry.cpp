#include <algorithm>

#include <fmt/format.h>

#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

struct Entry {
    std::string_view name;
    std::unique_ptr<Policy> (*make)();
    bool carried_out = false;
};
constexpr Entry kPolicies[] = {
    {"fifo", make_fifo, true},
    {"priority", make_priority, true},
    {"priority-whole", make_priority_whole, true},
    {"greedy", make_greedy, true},
    {"hpf", [] { return make_hpf(); }, true},
    {"fair", [] { return make_fair(); }, true},
    {"compact", [] { return make_compact(); }, true},
    {"slice", [] { return make_slice(); }},
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

std::string policy_problem(std::string_view name) {
    std::vector<std::string_view> choices;
    for (const Entry& each : kPolicies) {
        if (each.carried_out) choices.push_back(each.name);
        if (each.carried_out && each.name == name) return "";
    }
    const auto known = std::any_of(std::begin(kPolicies), std::end(kPolicies), [&](const Entry& each) { return each.name == name; });
    return fmt::format("{} '{}'; {} can be chosen", known ? "nothing gives a server yet the profiles that it needs: policy" : "there is no policy",
                       name, fmt::join(choices, ", "));
}

}  // namespace smt::runtime::schedule
