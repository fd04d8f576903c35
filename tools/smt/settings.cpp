// See settings.h.
#include "tools/smt/settings.h"

#include <cerrno>
#include <cstdlib>
#include <limits>

#include "runtime/protocol/environment.h"
#include "runtime/schedule/policy.h"
#include "tools/smt/command.h"

namespace smt::tools {

uint64_t parse_bytes(const std::string& text) {
    size_t digits = 0;
    unsigned long long value = 0;
    try {
        value = std::stoull(text, &digits);
    } catch (const std::exception&) {
        digits = 0;
    }
    std::string unit = text.substr(digits);
    const std::string units = "KMGT";
    size_t power = unit.empty() ? 0 : units.find(unit[0]) + 1;  // npos + 1 == 0
    bool bad = digits == 0 || text[0] == '-' || value == 0 || (!unit.empty() && power == 0) ||
               (unit.size() > 1 && unit.substr(1) != "B" && unit.substr(1) != "iB");
    if (bad || value > std::numeric_limits<uint64_t>::max() >> (10 * power))
        throw Misuse("--memory wants a size such as 800M or 4G, not '" + text + "'");
    return value << (10 * power);
}

uint32_t parse_seed(const std::string& text) {
    char* end = nullptr;
    errno = 0;
    unsigned long long value = std::strtoull(text.c_str(), &end, 10);
    if (text.empty() || text.front() == '-' || *end || errno || value == 0 || value > std::numeric_limits<uint32_t>::max())
        throw Misuse("--stress wants a seed, a whole number from 1 to 4294967295, not '" + text + "'");
    return static_cast<uint32_t>(value);
}

uint32_t parse_multiprocessors(const std::string& text) {
    constexpr unsigned long kMost = 4096;
    char* end = nullptr;
    errno = 0;
    const unsigned long value = std::strtoul(text.c_str(), &end, 10);
    if (text.empty() || text.front() == '-' || *end || errno || value == 0 || value > kMost)
        throw Misuse("--sms wants a number of multiprocessors, from 1 to 4096, not '" + text + "'");
    return static_cast<uint32_t>(value);
}

int parse_priority(const std::string& text) {
    if (text == "high") return 1;
    if (text == "normal") return 0;
    if (text == "low") return -1;
    char* end = nullptr;
    errno = 0;
    long value = std::strtol(text.c_str(), &end, 10);
    if (text.empty() || *end || errno || value < std::numeric_limits<int>::min() ||
        value > std::numeric_limits<int>::max())
        throw Misuse("--priority wants high, normal, low or a whole number (0 is normal, more is more urgent), not '" +
                     text + "'");
    return static_cast<int>(value);
}

std::string parse_weight(const std::string& text) {
    constexpr double kLeast = 0.001, kMost = 1000;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !(value >= kLeast && value <= kMost))
        throw Misuse("--weight wants a number from 0.001 to 1000 (1 is normal, 2 twice the share), not '" + text + "'");
    return text;
}

void check_policy() {
    const char* wanted = std::getenv(environment::kPolicy);
    if (!wanted || !*wanted) return;
    if (const std::string problem = runtime::schedule::policy_problem(wanted); !problem.empty())
        throw Misuse(std::string(environment::kPolicy) + ": " + problem);
}

}  // namespace smt::tools
