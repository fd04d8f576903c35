// See settings.h.
#include "tools/smt/settings.h"

#include <cerrno>
#include <cstdlib>
#include <limits>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/environment_number.h"
#include "tools/smt/command.h"

namespace smt::tools {

uint64_t parse_bytes(const std::string& text) {
    uint64_t value = 0;
    if (!environment::read_number(text.c_str(), 1, std::numeric_limits<uint64_t>::max(), &value))
        throw Misuse("--memory wants a size such as 800M or 4G, not '" + text + "'");
    return value;
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
    char* end = nullptr;
    errno = 0;
    const unsigned long value = std::strtoul(text.c_str(), &end, 10);
    if (text.empty() || text.front() == '-' || *end || errno || value == 0 || value > environment::kMultiprocessorsMax)
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

}  // namespace smt::tools
