#include "runtime/server/settings_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/journal/printable.h"
#include "runtime/settings/config.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

using settings::Setting;

// Compares values: "1G" equals "1024M".
bool same(const std::string& a, const std::string& b) {
    uint64_t first = 0, second = 0;
    if (settings::read_number(a, 0, ~0ull, &first) && settings::read_number(b, 0, ~0ull, &second))
        return first == second;
    return a == b;
}

std::string own(const Setting& setting, std::string_view policy) {
    if (setting.id == settings::Id::kPolicy && !policy.empty()) return std::string(policy);
    const std::string_view value = settings::text_of(setting);
    if (!value.empty()) return std::string(value);
    return setting.initial.is_value ? setting.initial.text : "";
}

}  // namespace

std::string differing_settings(std::string_view wanted, std::string_view policy) {
    std::string all;
    while (!wanted.empty()) {
        const std::string line(wanted.substr(0, wanted.find('\n')));
        wanted.remove_prefix(std::min(wanted.size(), line.size() + 1));
        const size_t end = line.find('=');
        if (end == std::string::npos) continue;
        const Setting* setting = settings::find_setting(std::string_view(line).substr(0, end));
        if (!setting || !settings::is_servers(*setting)) continue;
        const std::string theirs = line.substr(end + 1), ours = own(*setting, policy);
        if (!theirs.empty() && !same(theirs, ours))
            all += fmt::format("{} is {} here and {} in the server\n", settings::name_of(*setting),
                               journal::printable(theirs), ours.empty() ? "not set" : ours);
    }
    return all;
}

}  // namespace smt::runtime::server
