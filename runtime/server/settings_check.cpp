#include "runtime/server/settings_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/journal/printable.h"
#include "runtime/protocol/environment.h"
#include "runtime/protocol/environment_number.h"

namespace smt::runtime::server {

namespace {

// "1G" and "1024M" are the same.
bool same(const std::string& a, const std::string& b) {
    uint64_t first = 0, second = 0;
    if (environment::read_number(a.c_str(), 0, ~0ull, &first) && environment::read_number(b.c_str(), 0, ~0ull, &second)) return first == second;
    return a == b;
}

std::string own(const environment::ServerSetting& setting, std::string_view policy) {
    if (std::string_view(setting.name) == environment::kPolicy && !policy.empty()) return std::string(policy);
    const char* value = std::getenv(setting.name);
    return value && *value ? value : setting.otherwise;
}

}  // namespace

std::string differing_settings(std::string_view wanted, std::string_view policy) {
    std::string all;
    while (!wanted.empty()) {
        const std::string line(wanted.substr(0, wanted.find('\n')));
        wanted.remove_prefix(std::min(wanted.size(), line.size() + 1));
        const size_t end = line.find('=');
        if (end == std::string::npos) continue;
        for (const environment::ServerSetting& setting : environment::kServerSettings) {
            if (line.compare(0, end, setting.name) != 0) continue;
            const std::string theirs = line.substr(end + 1), ours = own(setting, policy);
            if (!theirs.empty() && !same(theirs, ours))
                all += fmt::format("{} is {} here and {} in the server\n", setting.name, journal::printable(theirs), ours.empty() ? "not set" : ours);
        }
    }
    return all;
}

}  // namespace smt::runtime::server
