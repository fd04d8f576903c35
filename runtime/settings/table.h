// The table of settings (settings.def) as data, and what its values mean. Needs libc only, and neither
// allocates nor throws: libsmt.so includes it. Everything here is constant, and may be used by every thread.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include <string_view>

namespace smt::settings {

enum class Id {
#define SMT_SETTING(id, ...) id,
#define SMT_RENAMED(old_name, new_name)
#include "runtime/settings/settings.def"
#undef SMT_SETTING
#undef SMT_RENAMED
};

enum Reader : unsigned { kClient = 1, kServer = 2, kWorker = 4, kCommand = 8, kSimulator = 16 };
enum class Audience { kPublic, kProgram, kDeveloper };
enum class Type {
    kCount,
    kBytes,
    kFlag,
    kChoice,
    kName,
    kPath,
    kFolder,
    kPriority,
    kWeight,
    kTime,
    kSlowdown
};

struct Takes {
    Type type;
    uint64_t least = 0, most = 0;  // of counts and bytes; most: the length of a name
    const char* words = "";        // of a choice: "error|native"
};

struct Initial {
    const char* text;
    bool is_value;  // else words for people: the reader finds the value
};

struct Setting {
    Id id;
    const char* variable;
    const char* item;  // "": the variable is the setting
    Takes takes;
    Initial initial;
    unsigned readers;  // Reader's bits
    Audience audience;
    const char* sentence;
};

struct Renamed {
    const char* old_name;
    const char* new_name;
};

namespace table {

constexpr uint64_t kAny = UINT64_MAX;
constexpr auto kPublic = Audience::kPublic;
constexpr auto kProgram = Audience::kProgram;
constexpr auto kDeveloper = Audience::kDeveloper;
constexpr Takes count(uint64_t least, uint64_t most) { return {Type::kCount, least, most}; }
constexpr Takes bytes(uint64_t least, uint64_t most) { return {Type::kBytes, least, most}; }
constexpr Takes flag() { return {Type::kFlag, 0, 1}; }
constexpr Takes one_of(const char* words) { return {Type::kChoice, 0, 0, words}; }
constexpr Takes name(uint64_t most) { return {Type::kName, 0, most}; }
constexpr Takes path() { return {Type::kPath}; }
constexpr Takes folder() { return {Type::kFolder}; }  // an absolute path
constexpr Takes priority() { return {Type::kPriority}; }
constexpr Takes weight() { return {Type::kWeight}; }
constexpr Takes time() { return {Type::kTime}; }
constexpr Takes slowdown() { return {Type::kSlowdown}; }
constexpr Initial fixed(const char* text) { return {text, true}; }
constexpr Initial found(const char* text) { return {text, false}; }

inline constexpr Setting kSettings[] = {
#define SMT_SETTING(id, variable, item, takes, initial, readers, audience, sentence) \
    {Id::id, variable, item, takes, initial, readers, audience, sentence},
#define SMT_RENAMED(old_name, new_name)
#include "runtime/settings/settings.def"
#undef SMT_SETTING
#undef SMT_RENAMED
};

}  // namespace table

using table::kSettings;

inline constexpr Renamed kRenamed[] = {
#define SMT_SETTING(...)
#define SMT_RENAMED(old_name, new_name) {old_name, new_name},
#include "runtime/settings/settings.def"
#undef SMT_SETTING
#undef SMT_RENAMED
};

constexpr const Setting& setting(Id id) { return kSettings[static_cast<int>(id)]; }
constexpr const char* variable_of(Id id) { return setting(id).variable; }

// "800", "512M", "4GiB": digits, and perhaps a unit, a power of 1024. False: the text is no number, or out of
// range.
constexpr bool read_number(std::string_view text, uint64_t least, uint64_t most, uint64_t* value) {
    uint64_t number = 0;
    size_t at = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
        const uint64_t digit = static_cast<uint64_t>(text[at] - '0');
        if (number > (UINT64_MAX - digit) / 10) return false;
        number = number * 10 + digit;
    }
    if (at == 0) return false;
    text.remove_prefix(at);
    constexpr std::string_view kUnits = "KMGTkmgt";
    const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text[0]);
    if (unit != std::string_view::npos) {
        const unsigned power = 10 * (static_cast<unsigned>(unit) % 4 + 1);
        if (number > UINT64_MAX >> power) return false;
        number <<= power;
        text.remove_prefix(1);
        if (text == "B" || text == "iB") text = {};
    }
    if (!text.empty() || number < least || number > most) return false;
    *value = number;
    return true;
}

// high, normal, low or a whole number.
constexpr bool read_priority(std::string_view text, int32_t* value) {
    if (text == "high") return *value = 1, true;
    if (text == "normal") return *value = 0, true;
    if (text == "low") return *value = -1, true;
    const bool negative = !text.empty() && text[0] == '-';
    if (negative) text.remove_prefix(1);
    uint64_t number = 0;
    for (const char each : text)
        if (each < '0' || each > '9') return false;  // no unit
    if (!read_number(text, 0, INT32_MAX, &number)) return false;
    return *value = negative ? -static_cast<int32_t>(number) : static_cast<int32_t>(number), true;
}

// A number with three decimals at most, in thousandths. Not strtod: the program may have set a locale.
constexpr bool read_thousandths(std::string_view text, uint64_t least, uint64_t most, uint64_t* thousandths) {
    uint64_t value = 0;
    int decimals = -1;  // none before the point
    size_t digits = 0;
    for (const char each : text) {
        if (each == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (each < '0' || each > '9' || value > most || decimals == 3) return false;
        value = value * 10 + static_cast<uint64_t>(each - '0');
        ++digits;
        if (decimals >= 0) ++decimals;
    }
    for (int place = decimals < 0 ? 0 : decimals; place < 3; ++place) value *= 10;
    if (digits == 0 || value < least || value > most) return false;
    *thousandths = value;
    return true;
}

// From 0.001 to 1000.
constexpr bool read_weight(std::string_view text, uint32_t* thousandths) {
    uint64_t value = 0;
    if (!read_thousandths(text, 1, 1'000'000, &value)) return false;
    *thousandths = static_cast<uint32_t>(value);
    return true;
}

// Times the time by itself: from 1.001 to 100.
constexpr bool read_slowdown(std::string_view text, uint32_t* thousandths) {
    uint64_t value = 0;
    if (!read_thousandths(text, 1001, 100'000, &value)) return false;
    *thousandths = static_cast<uint32_t>(value);
    return true;
}

// "8ms", "500us", "1.5s"; a number alone is of ms. From 1 us to an hour.
constexpr bool read_time(std::string_view text, uint64_t* us) {
    constexpr uint64_t kMost = 3'600'000'000;
    uint64_t unit = 1000, thousandths = 0;
    if (text.ends_with("us"))
        unit = 1, text.remove_suffix(2);
    else if (text.ends_with("ms"))
        text.remove_suffix(2);
    else if (text.ends_with("s"))
        unit = 1'000'000, text.remove_suffix(1);
    if (!read_thousandths(text, 0, kMost * 1000 / unit, &thousandths)) return false;
    *us = thousandths * unit / 1000;
    return *us >= 1;
}

constexpr bool is_word_of(const char* words, std::string_view text) {
    std::string_view rest = words;
    while (true) {
        const size_t end = rest.find('|');
        const std::string_view word(rest.data(), end == std::string_view::npos ? rest.size() : end);
        if (word == text) return true;
        if (end == std::string_view::npos) return false;
        rest.remove_prefix(end + 1);
    }
}

// Whether a value that is not empty is one that the setting takes.
constexpr bool accepts(const Setting& setting, std::string_view text) {
    const Takes& takes = setting.takes;
    uint64_t number = 0;
    int32_t priority = 0;
    uint32_t weight = 0, slowdown = 0;
    switch (takes.type) {
        case Type::kFlag:
        case Type::kCount:
        case Type::kBytes:
            return read_number(text, takes.least, takes.most, &number);
        case Type::kChoice:
            return is_word_of(takes.words, text);
        case Type::kName:
            return text.size() <= takes.most;
        case Type::kFolder:
            return text.starts_with('/');
        case Type::kPriority:
            return read_priority(text, &priority);
        case Type::kWeight:
            return read_weight(text, &weight);
        case Type::kTime:
            return read_time(text, &number);
        case Type::kSlowdown:
            return read_slowdown(text, &slowdown);
        case Type::kPath:
            break;
    }
    return true;
}

constexpr bool table_is_sound() {
    for (const Setting& each : kSettings)
        if (each.initial.is_value && !accepts(each, each.initial.text)) return false;
    return true;
}
static_assert(table_is_sound(), "a default is not among the values that its setting takes");

// What the setting takes, in words: "a number from 0 to 4096". At most `bytes`, ended by NUL.
inline void describe(const Setting& setting, char* to, size_t bytes) {
    const Takes& takes = setting.takes;
    const auto least = static_cast<unsigned long long>(takes.least),
               most = static_cast<unsigned long long>(takes.most);
    switch (takes.type) {
        case Type::kCount:
            takes.most == UINT64_MAX ? snprintf(to, bytes, "a whole number")
                                     : snprintf(to, bytes, "a number from %llu to %llu", least, most);
            return;
        case Type::kBytes:
            if (takes.most == UINT64_MAX)
                snprintf(to, bytes, "a size such as 800M or 4G");
            else
                snprintf(to, bytes, "a size such as 800M or 4G, from %lluM to %lluM", least >> 20,
                         most >> 20);
            return;
        case Type::kFlag:
            snprintf(to, bytes, "0 or 1");
            return;
        case Type::kName:
            snprintf(to, bytes, "a name of at most %llu bytes", most);
            return;
        case Type::kPath:
            snprintf(to, bytes, "a path");
            return;
        case Type::kFolder:
            snprintf(to, bytes, "an absolute path");
            return;
        case Type::kPriority:
            snprintf(to, bytes, "high, normal, low or a whole number");
            return;
        case Type::kWeight:
            snprintf(to, bytes, "a number from 0.001 to 1000 with three decimals at most");
            return;
        case Type::kTime:
            snprintf(to, bytes, "a time such as 8ms, 500us or 1.5s");
            return;
        case Type::kSlowdown:
            snprintf(to, bytes, "a number from 1.001 to 100 with three decimals at most");
            return;
        case Type::kChoice:
            break;
    }
    size_t used = 0;
    for (const char* at = takes.words; *at && used + 3 < bytes; ++at) {
        if (*at != '|')
            to[used++] = *at;
        else
            to[used++] = ',', to[used++] = ' ';
    }
    if (bytes) to[used] = 0;
}

}  // namespace smt::settings
