// Values of the environment's variables (environment.h), for whoever takes what is no proper value for not set.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace smt::environment {

inline std::string text(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// With an optional K, M, G or T, in powers of 1024.
inline uint64_t number(const char* name, uint64_t least, uint64_t most, uint64_t otherwise) {
    const std::string value = text(name);
    if (value.empty() || value[0] == '-') return otherwise;
    char* end = nullptr;
    uint64_t result = std::strtoull(value.c_str(), &end, 10);
    static constexpr char kUnits[] = "KMGT";
    if (const char* unit = *end ? std::strchr(kUnits, *end) : nullptr) {
        result <<= 10 * (unit - kUnits + 1);
        ++end;
    }
    return *end == 0 && result >= least && result <= most ? result : otherwise;
}

}  // namespace smt::environment
