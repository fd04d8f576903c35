#include "runtime/settings/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>

#include "runtime/journal/printable.h"
#include "runtime/settings/grants.h"
#include "runtime/settings/read.h"
#include "runtime/settings/spelling.h"
#include "runtime/settings/toml_file.h"

namespace smt::settings {

namespace {

using runtime::journal::printable;

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string lower_case_name(const char* variable) {
    std::string name = variable + std::strlen("SMT_");
    for (char& each : name) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    return name;
}

std::string wrong(const Setting& setting, std::string_view value) {
    return fmt::format("is '{}'; it takes {}", printable(value), takes_of(setting));
}

std::vector<std::string> keys_for_files() {
    std::vector<std::string> keys;
    for (const Setting& each : kSettings)
        if (each.audience == Audience::kPublic) keys.push_back(key_of(each));
    return keys;
}

// One table of a file, and the tables in it.
class Reading {
public:
    explicit Reading(File& file) : file_(file) {}

    void table(const toml::table& table, const std::string& prefix) {
        for (const auto& [key, node] : table) {
            const std::string name = prefix + std::string(key.str());
            if (prefix.empty() && file_.path == system_file() && is_of_grants(name)) continue;
            if (const auto* inner = node.as_table(); inner && prefix.empty() && is_group(name))
                this->table(*inner, name + ".");
            else
                value(name, node);
        }
    }

private:
    static bool is_of_grants(const std::string& name) {
        return std::find(std::begin(kGrantTables), std::end(kGrantTables), name) != std::end(kGrantTables);
    }
    static bool is_group(const std::string& name) {
        return std::any_of(std::begin(kSettings), std::end(kSettings), [&](const Setting& each) {
            return *each.item && lower_case_name(each.variable) == name;
        });
    }

    void value(const std::string& key, const toml::node& node) {
        const Setting* setting = find_setting(key);
        if (!setting)
            return problem(node, printable(key) + " is no setting" + suggestion(key, keys_for_files()));
        if (setting->audience != Audience::kPublic)
            return problem(node, fmt::format("{} is not read from files; set {}", key, setting->variable));
        const std::string text = text_of_node(node);
        const bool is_flag = setting->takes.type == Type::kFlag;
        if (text.empty() || (node.is_boolean() && !is_flag) || !accepts(*setting, text))
            return problem(node, key + " " + wrong(*setting, text));
        if (*setting->item && text.find(',') != std::string::npos)
            return problem(node, key + " cannot have a comma");
        file_.values[setting->id] = text;
    }

    void problem(const toml::node& node, const std::string& what) {
        file_.problems.push_back(problem_at(file_.path, node, what));
    }

    File& file_;
};

std::vector<std::string> items_of(std::string_view variable) {
    std::vector<std::string> items;
    for (const Setting& each : kSettings)
        if (each.variable == variable && *each.item) items.emplace_back(each.item);
    return items;
}

// Entries of a variable's list that are no items of it: SMT_SIM="smss=8".
void check_items(const std::string& variable, std::vector<std::string>& problems) {
    const std::vector<std::string> items = items_of(variable);
    if (items.empty()) return;
    std::istringstream list(environment(variable.c_str()));
    for (std::string entry; std::getline(list, entry, ',');) {
        const std::string item = entry.substr(0, entry.find('='));
        if (item.empty() || std::find(items.begin(), items.end(), item) != items.end()) continue;
        const std::string near = suggestion(item, items);
        problems.push_back(fmt::format("{} in {} is none of its items{}", printable(item), variable,
                                       near.empty() ? fmt::format(": {}", fmt::join(items, ", ")) : near));
    }
}

std::set<std::string> known_variables() {
    std::set<std::string> names;
    for (const Setting& each : kSettings) names.insert(each.variable);
    return names;
}

std::string about_unknown(const std::string& name, const std::set<std::string>& known) {
    for (const Renamed& each : kRenamed)
        if (name == each.old_name)
            return fmt::format("{} is not read any more: it is {}", name, each.new_name);
    return printable(name) + " is no setting of smt" + suggestion(name, {known.begin(), known.end()});
}

bool is_of_tests(const std::string& name) {
    return name.starts_with("SMT_FAKE_") || name.starts_with("SMT_TEST_");
}

}  // namespace

std::string user_file() {
    if (const std::string xdg = environment("XDG_CONFIG_HOME"); !xdg.empty()) return xdg + "/smt.toml";
    if (const std::string home = environment("HOME"); !home.empty()) return home + "/.config/smt.toml";
    return "";
}

std::string system_file() {
    const char* chosen = c_text_of(Id::kSystemFile);
    return chosen ? chosen : setting(Id::kSystemFile).initial.text;
}

std::string key_of(const Setting& setting) {
    const std::string name = lower_case_name(setting.variable);
    return *setting.item ? name + "." + setting.item : name;
}

std::string name_of(const Setting& setting) {
    return *setting.item ? fmt::format("{} in {}", setting.item, setting.variable) : setting.variable;
}

const Setting* find_setting(std::string_view key) {
    for (const Setting& each : kSettings)
        if (key_of(each) == key) return &each;
    return nullptr;
}

std::string takes_of(const Setting& setting) {
    char text[200];
    describe(setting, text, sizeof text);
    return text;
}

bool is_servers(const Setting& setting) {
    const bool says_which =
        setting.id == Id::kRuntimeDir || setting.id == Id::kDevice || setting.id == Id::kSystemFile;
    return (setting.readers & (kServer | kWorker | kSimulator)) && !says_which;
}

File read_file(const std::string& path) {
    File file;
    file.path = path;
    const std::optional<toml::table> table = parse_file(path, file.problems);
    if (!table) return file;
    Reading(file).table(*table, "");
    if (path == system_file()) {
        const Grants grants = read_grants(path);
        file.problems.insert(file.problems.end(), grants.problems.begin(), grants.problems.end());
    }
    return file;
}

Config Config::read() {
    std::vector<File> files;
    if (const std::string user = user_file(); !user.empty()) files.push_back(read_file(user));
    files.push_back(read_file(system_file()));
    return Config(std::move(files));
}

bool Config::administrator_decides(const Setting& setting) const {
    const bool isolates = setting.id == Id::kStrictTenants || setting.id == Id::kFenceTenants;
    return isolates && !files_.empty() && files_.back().values.contains(setting.id);
}

Source Config::source_of(const Setting& setting) const {
    if (administrator_decides(setting)) return {files_.back().values.at(setting.id), files_.back().path};
    if (const std::string_view own = text_of(setting); !own.empty()) return {std::string(own), "environment"};
    for (const File& each : files_)
        if (const auto found = each.values.find(setting.id); found != each.values.end())
            return {found->second, each.path};
    return {setting.initial.is_value ? setting.initial.text : "", "default"};
}

void Config::apply() const {
    for (const Setting& each : kSettings) {
        if (!text_of(each).empty() && !administrator_decides(each)) continue;
        const Source source = source_of(each);
        if (source.from != "default") set(each.id, source.value);
    }
}

std::vector<std::string> Config::problems() const {
    std::vector<std::string> problems;
    for (const Setting& each : kSettings) {
        const std::string_view text = text_of(each);
        if (!text.empty() && !accepts(each, text))
            problems.push_back(name_of(each) + " " + wrong(each, text));
    }
    for (const std::string& variable : known_variables()) check_items(variable, problems);
    for (const File& each : files_)
        problems.insert(problems.end(), each.problems.begin(), each.problems.end());
    return problems;
}

std::vector<std::string> Config::unknown_variables() const {
    const std::set<std::string> known = known_variables();
    std::vector<std::string> unknown;
    for (char** at = environ; *at; ++at) {
        const std::string entry = *at, name = entry.substr(0, entry.find('='));
        if (name.starts_with("SMT_") && !is_of_tests(name) && !known.count(name))
            unknown.push_back(about_unknown(name, known));
    }
    return unknown;
}

void set(Id id, const std::string& value) {
    const Setting& setting = settings::setting(id);
    if (!*setting.item) {
        ::setenv(setting.variable, value.c_str(), 1);
        return;
    }
    const std::string list = environment(setting.variable), entry = std::string(setting.item) + "=" + value;
    ::setenv(setting.variable, (list.empty() ? entry : list + "," + entry).c_str(), 1);
}

void unset(Id id) {
    if (*setting(id).item)
        set(id, "");  // the last entry counts, and an empty one is none
    else
        ::unsetenv(variable_of(id));
}

}  // namespace smt::settings
