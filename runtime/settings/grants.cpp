#include "runtime/settings/grants.h"

#include <algorithm>
#include <string_view>

#include "runtime/settings/spelling.h"
#include "runtime/settings/table.h"
#include "runtime/settings/toml_file.h"

namespace smt::settings {

namespace {

using runtime::journal::printable;

const std::vector<std::string> kKeys = {"memory", "sessions", "priority", "weight", "administers"};

class GrantReading {
public:
    GrantReading(const std::string& path, Grants& grants) : path_(path), grants_(grants) {}

    void everyone(const toml::node& node) { grants_.everyone = grant("everyone", node); }
    void named(const std::string& kind, const toml::node& node, std::map<std::string, Grant>& grants) {
        const auto* tables = node.as_table();
        if (!tables) return problem(node, kind + " is not a table: write [" + kind + ".NAME]");
        for (const auto& [name, inner] : *tables)
            grants[std::string(name.str())] = grant(kind + "." + printable(name.str()), inner);
    }

private:
    Grant grant(const std::string& table, const toml::node& node) {
        Grant grant;
        const auto* keys = node.as_table();
        if (!keys) problem(node, table + " is not a table");
        if (!keys) return grant;
        for (const auto& [key, value] : *keys) {
            const std::string name(key.str()), text = text_of_node(value);
            if (std::find(kKeys.begin(), kKeys.end(), name) == kKeys.end())
                problem(value, fmt::format("{} in {} is nothing to grant{}", printable(name), table,
                                           suggestion(name, kKeys)));
            else if (value.is_boolean() != (name == "administers") || !take(grant, name, text))
                problem(value, fmt::format("{} in {} is '{}'; it takes {}", name, table, printable(text),
                                           takes(name)));
        }
        return grant;
    }

    static bool take(Grant& grant, std::string_view key, std::string_view text) {
        uint64_t number = 0;
        int32_t priority = 0;
        uint32_t weight = 0;
        if (key == "memory")
            return read_number(text, 0, UINT64_MAX, &number) && (grant.memory = number, true);
        if (key == "sessions")
            return read_number(text, 0, 4096, &number) &&
                   (grant.sessions = static_cast<uint32_t>(number), true);
        if (key == "priority") return read_priority(text, &priority) && (grant.priority = priority, true);
        if (key == "weight") return read_weight(text, &weight) && (grant.weight_thousandths = weight, true);
        return grant.administers = text == "1", true;
    }

    static const char* takes(std::string_view key) {
        if (key == "memory") return "a size such as 800M or 4G; 0: all of the device's";
        if (key == "sessions") return "a number from 0 to 4096";
        if (key == "priority") return "high, normal, low or a whole number";
        if (key == "weight") return "a number from 0.001 to 1000 with three decimals at most";
        return "true or false";
    }

    void problem(const toml::node& node, const std::string& what) {
        grants_.problems.push_back(problem_at(path_, node, what));
    }

    const std::string& path_;
    Grants& grants_;
};

// 0 is all of the device's memory.
uint64_t generosity(uint64_t memory) { return memory - 1; }

template <typename Value>
void add_value(std::optional<Value>& value, const std::optional<Value>& other, bool or_more) {
    if (other && (!value || (or_more && *other > *value))) value = other;
}

}  // namespace

void Grant::add(const Grant& other, bool or_more) {
    if (other.memory && (!memory || (or_more && generosity(*other.memory) > generosity(*memory))))
        memory = other.memory;
    add_value(sessions, other.sessions, or_more);
    add_value(priority, other.priority, or_more);
    add_value(weight_thousandths, other.weight_thousandths, or_more);
    add_value(administers, other.administers, or_more);
}

Grants read_grants(const std::string& path) {
    Grants grants;
    const std::optional<toml::table> file = parse_file(path, grants.problems);
    if (!file) return grants;
    GrantReading reading(path, grants);
    for (const auto& [key, node] : *file) {
        if (key == "everyone")
            reading.everyone(node);
        else if (key == "users")
            reading.named("users", node, grants.users);
        else if (key == "groups")
            reading.named("groups", node, grants.groups);
    }
    return grants;
}

}  // namespace smt::settings
