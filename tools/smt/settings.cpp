// See settings.h.
#include "tools/smt/settings.h"

#include <cerrno>
#include <cstdlib>
#include <limits>

#include "runtime/settings/table.h"
#include "tools/smt/command.h"

namespace smt::tools {

uint64_t parse_bytes(const std::string& text) {
    uint64_t value = 0;
    if (!settings::read_number(text, 1, std::numeric_limits<uint64_t>::max(), &value))
        throw Misuse("--memory wants a size such as 800M or 4G, not '" + text + "'");
    return value;
}

uint32_t parse_seed(const std::string& text) {
    char* end = nullptr;
    errno = 0;
    unsigned long long value = std::strtoull(text.c_str(), &end, 10);
    if (text.empty() || text.front() == '-' || *end || errno || value == 0 ||
        value > std::numeric_limits<uint32_t>::max())
        throw Misuse("--stress wants a seed, a whole number from 1 to 4294967295, not '" + text + "'");
    return static_cast<uint32_t>(value);
}

uint32_t parse_multiprocessors(const std::string& text) {
    char* end = nullptr;
    errno = 0;
    const unsigned long value = std::strtoul(text.c_str(), &end, 10);
    if (text.empty() || text.front() == '-' || *end || errno || value == 0 ||
        value > settings::setting(settings::Id::kMultiprocessors).takes.most)
        throw Misuse("--sms wants a number of multiprocessors, from 1 to 4096, not '" + text + "'");
    return static_cast<uint32_t>(value);
}

uint32_t parse_seconds(const char* option, settings::Id setting, uint64_t least, const std::string& text) {
    uint64_t value = 0;
    const uint64_t most = settings::setting(setting).takes.most;
    if (!settings::read_number(text, least, most, &value))
        throw Misuse(std::string(option) + " wants a number of seconds, from " + std::to_string(least) +
                     " to " + std::to_string(most) + ", not '" + text + "'");
    return static_cast<uint32_t>(value);
}

int parse_priority(const std::string& text) {
    int32_t value = 0;
    if (!settings::read_priority(text, &value))
        throw Misuse(
            "--priority wants high, normal, low or a whole number (0 is normal, more is more urgent), not '" +
            text + "'");
    return value;
}

std::string parse_isolation(const std::string& text) {
    if (!settings::accepts(settings::setting(settings::Id::kIsolation), text))
        throw Misuse("--isolation is shared, strict, fence or quarantine, not '" + text + "'");
    return text;
}

std::string parse_weight(const std::string& text) {
    uint32_t thousandths = 0;
    if (!settings::read_weight(text, &thousandths))
        throw Misuse(
            "--weight wants a number from 0.001 to 1000 with three decimals at most (1 is normal, 2 twice "
            "the share), not '" +
            text + "'");
    return text;
}

std::string parse_time(const std::string& text) {
    uint64_t us = 0;
    if (!settings::read_time(text, &us))
        throw Misuse("--p99 wants a time from 1us to 3600s, such as 8ms, 500us or 1.5s, not '" + text + "'");
    return text;
}

std::string parse_slowdown(const std::string& text) {
    uint32_t thousandths = 0;
    if (!settings::read_slowdown(text, &thousandths))
        throw Misuse(
            "--slowdown wants a number from 1.001 to 100 with three decimals at most (1.1 is 10 % longer "
            "than "
            "by itself), not '" +
            text + "'");
    return text;
}

}  // namespace smt::tools
