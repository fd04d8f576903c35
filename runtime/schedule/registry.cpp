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
    {"greedy", make_greedy},
    {"hpf", [] { return make_hpf(); }},
    {"fair", [] { return make_fair(); }},
    {"slice", [] { return make_slice(); }},
    {"compact", [] { return make_compact(); }},
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

bool can_be_carried_out(std::string_view name) {
    for (const Entry& each : kPolicies) {
        if (each.name == name) return each.carried_out;
    }
    return false;
}

}  // namespace smt::runtime::schedule
