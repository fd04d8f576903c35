// Numbers in environment variables, read alike by whoever reads them. What makes no sense counts as not said;
// `smt run`, `smt server start` and `smt doctor` say so beforehand.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace smt::environment {

// "800", "512M", "4GiB": digits, and perhaps a unit, a power of 1024. False: it is no such thing, or out of range.
inline bool read_number(const char* text, uint64_t least, uint64_t most, uint64_t* value) {
    uint64_t number = 0;
    const char* at = text;
    for (; *at >= '0' && *at <= '9'; ++at) {
        const uint64_t digit = static_cast<uint64_t>(*at - '0');
        if (number > (~0ull - digit) / 10) return false;
        number = number * 10 + digit;
    }
    if (at == text) return false;
    static constexpr char kUnits[] = "KMGTkmgt";
    if (const char* unit = *at ? std::strchr(kUnits, *at) : nullptr) {
        const unsigned power = 10 * (static_cast<unsigned>(unit - kUnits) % 4 + 1);
        if (number > ~0ull >> power) return false;
        number <<= power;
        ++at;
        if (std::strcmp(at, "B") == 0 || std::strcmp(at, "iB") == 0) at += std::strlen(at);
    }
    if (*at || number < least || number > most) return false;
    *value = number;
    return true;
}

// `otherwise`: it is not set, empty, or makes no sense.
inline uint64_t number_of(const char* variable, uint64_t least, uint64_t most, uint64_t otherwise) {
    const char* text = std::getenv(variable);
    uint64_t value = otherwise;
    if (text) read_number(text, least, most, &value);
    return value;
}

}  // namespace smt::environment
