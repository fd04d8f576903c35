// What users of a system's server are granted, by the administrator's file:
//
//   [everyone]              # each key may be left out
//   memory = "8G"           # device memory of all programs of the user together
//   sessions = 8            # programs at once
//   priority = 0            # the highest that a program of the user gets
//   weight = 1              # likewise
//   [users.alice]           # a name or a number
//   priority = "high"
//   [groups.operators]
//   administers = true      # sees all tenants, and may change, suspend and stop what is another user's
//
// Of each key the user's own table counts, else the most generous one of the user's groups, else [everyone],
// else the default. Root administers, and is granted everything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace smt::settings {

struct Grant {
    std::optional<uint64_t> memory;  // bytes; 0: all of the device's
    std::optional<uint32_t> sessions;
    std::optional<int32_t> priority;
    std::optional<uint32_t> weight_thousandths;
    std::optional<bool> administers;

    // Takes from `other` what is not said here; `or_more`: also what is more there.
    void add(const Grant& other, bool or_more);
};

// What holds where no table says anything.
inline constexpr uint32_t kGrantedSessions = 64;  // of some hundred places that a server has
inline constexpr int32_t kGrantedPriority = 0;
inline constexpr uint32_t kGrantedWeight = 1000;

struct Grants {
    Grant everyone;
    std::map<std::string, Grant> users, groups;  // by name, or number in digits
    std::vector<std::string> problems;           // as File::problems (config.h)
};

inline constexpr const char* kGrantTables[] = {"everyone", "users", "groups"};

// Of a file that does not exist: no table.
Grants read_grants(const std::string& path);

}  // namespace smt::settings
