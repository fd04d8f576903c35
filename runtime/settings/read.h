// The values of settings in this process: what the environment says, else the default. The command and the
// server put what config files say into their environment first (config.h). Needs libc only, and neither
// allocates nor throws: libsmt.so includes it.
//
// A value that its setting does not take counts as the default here; problem_of() says what is wrong with it.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/settings/table.h"

namespace smt::settings {

// An item's value in a list "sms=8,grace=100,mapping"; the last one counts. Without "=" it is "1". Empty: it
// is not there.
inline std::string_view item_in(std::string_view list, std::string_view item) {
    std::string_view value;
    while (!list.empty()) {
        const size_t comma = list.find(','), bytes = comma == std::string_view::npos ? list.size() : comma;
        const std::string_view entry(list.data(), bytes);
        list.remove_prefix(comma == std::string_view::npos ? bytes : bytes + 1);
        if (!entry.starts_with(item)) continue;
        if (entry.size() == item.size())
            value = "1";
        else if (entry[item.size()] == '=')
            value = std::string_view(entry.data() + item.size() + 1, entry.size() - item.size() - 1);
    }
    return value;
}

// As the environment has it; empty: not set. Valid until the environment changes; ended by NUL where the
// variable is the setting.
inline std::string_view text_of(const Setting& setting) {
    const char* value = getenv(setting.variable);
    if (!value) return {};
    return *setting.item ? item_in(value, setting.item) : std::string_view(value);
}
inline std::string_view text_of(Id id) { return text_of(setting(id)); }

// Null: not set, or empty. For settings that are a variable.
inline const char* c_text_of(Id id) {
    const char* value = getenv(variable_of(id));
    return value && *value ? value : nullptr;
}

inline uint64_t number_of(Id id, uint64_t otherwise) {
    uint64_t value = otherwise;
    const Takes& takes = setting(id).takes;
    read_number(text_of(id), takes.least, takes.most, &value);
    return value;
}

constexpr uint64_t default_number(Id id) {
    uint64_t value = 0;
    read_number(setting(id).initial.text, 0, UINT64_MAX, &value);
    return value;
}
inline uint64_t number_of(Id id) { return number_of(id, default_number(id)); }

inline bool flag_of(Id id) { return number_of(id) != 0; }
inline bool flag_of(Id id, bool otherwise) { return number_of(id, otherwise) != 0; }

inline bool is(Id id, std::string_view word) { return text_of(id) == word; }

// Whether the environment's value is one that the setting does not take: "SMT_SMS is 'lots'; it takes a
// number from 0 to 4096".
inline bool problem_of(const Setting& setting, char* to, size_t bytes) {
    const std::string_view text = text_of(setting);
    if (text.empty() || accepts(setting, text)) return false;
    char what[200];
    describe(setting, what, sizeof what);
    const int shown = text.size() < 100 ? static_cast<int>(text.size()) : 100;
    if (*setting.item)
        snprintf(to, bytes, "%s in %s is '%.*s'; it takes %s", setting.item, setting.variable, shown,
                 text.data(), what);
    else
        snprintf(to, bytes, "%s is '%.*s'; it takes %s", setting.variable, shown, text.data(), what);
    return true;
}

// The first problem among the settings of `reader`.
inline bool find_problem(unsigned reader, char* to, size_t bytes) {
    for (const Setting& each : kSettings)
        if ((each.readers & reader) && problem_of(each, to, bytes)) return true;
    return false;
}

}  // namespace smt::settings
