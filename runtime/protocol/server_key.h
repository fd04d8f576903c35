// A server's key: how its files in the runtime directory begin.
//
//   key    := GPU | GPU '@' tenant
//   tenant := NAME | '_' FAMILY
//
// GPU is its UUID in hexadecimal digits, "device", or a simulated one's (simulated_gpus.h).
// The second form is the server of one strict tenant (SMT_ISOLATION=strict): the tenant with that name, or
// the one without a name that has that family (Hello::family). NAME and FAMILY have letters, digits, '-', '_'
// and '.' only, and NAME begins with a letter or digit. So no key leads out of the directory, and two tenants
// have two keys.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <string_view>

#include "runtime/settings/read.h"

namespace smt::protocol {

inline constexpr char kStrictMark = '@';
inline constexpr size_t kMostGpuKey = 64;
inline constexpr size_t kKeyBytes = kMostGpuKey + 1 + 64 + 1;  // with its NUL

constexpr bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
constexpr bool has_only(std::string_view text, std::string_view others) {
    for (char c : text)
        if (!is_alphanumeric(c) && others.find(c) == std::string_view::npos) return false;
    return !text.empty();
}

// The part in front of '@', and whether there is one.
constexpr std::string_view gpu_of_key(std::string_view key) { return key.substr(0, key.find(kStrictMark)); }
constexpr bool is_strict_key(std::string_view key) { return key.find(kStrictMark) != std::string_view::npos; }

constexpr bool is_key(std::string_view key) {
    const std::string_view gpu = gpu_of_key(key);
    return key.size() < kKeyBytes && gpu.size() <= kMostGpuKey && has_only(gpu, "-_") &&
           (!is_strict_key(key) || has_only(key.substr(gpu.size() + 1), "-_."));
}

// A number for a key (FNV-1a), by which servers name each other in handles of shared memory.
constexpr uint64_t server_number(std::string_view key) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    return hash;
}

// Settings that a strict tenant's server does without: no other tenant could go on after a fault, or is there
// for a policy to decide about; and the shared server may record into the same file.
inline constexpr settings::Id kOfSharedServers[] = {settings::Id::kKeeper, settings::Id::kRecord};

inline bool is_strict() { return settings::is(settings::Id::kIsolation, "strict"); }

inline bool wants_fence() { return settings::is(settings::Id::kIsolation, "fence"); }

inline bool wants_quarantine() { return settings::is(settings::Id::kIsolation, "quarantine"); }

// Whether the setting, a list, names the tenant.
inline bool names_tenant(settings::Id list, std::string_view tenant) {
    constexpr std::string_view kBetween = ", ";
    std::string_view names = settings::text_of(list);
    while (!names.empty()) {
        const std::string_view name = names.substr(0, names.find_first_of(kBetween));
        if (!name.empty() && name == tenant) return true;
        names.remove_prefix(name.size() < names.size() ? name.size() + 1 : name.size());
    }
    return false;
}
inline bool has_to_be_strict(std::string_view tenant) {
    return names_tenant(settings::Id::kStrictTenants, tenant);
}
inline bool has_to_be_fenced(std::string_view tenant) {
    return names_tenant(settings::Id::kFenceTenants, tenant);
}

// Makes `key`, of a GPU, that of a strict tenant's server. `family` counts if `name` is null or empty. Null,
// or what is wrong with the tenant.
inline const char* add_tenant(char (&key)[kKeyBytes], const char* name, const char* family) {
    const bool named = name && *name;
    if (named && (!has_only(name, "-_.") || !is_alphanumeric(*name)))
        return "with SMT_ISOLATION=strict a tenant's name (--tenant, SMT_TENANT) has letters, digits, '-', "
               "'_' "
               "and '.' only, and begins with a letter or digit";
    if (!named && !has_only(family, "-_."))
        return "with SMT_ISOLATION=strict SMT_FAMILY has letters, digits, '-', '_' and '.' only";
    const size_t used = strlen(key), left = sizeof key - used;
    const int length =
        snprintf(key + used, left, "%c%s%s", kStrictMark, named ? "" : "_", named ? name : family);
    return length > 0 && static_cast<size_t>(length) < left
               ? nullptr
               : "with SMT_ISOLATION=strict a tenant's name (SMT_TENANT, SMT_FAMILY) has at most 63 bytes";
}

}  // namespace smt::protocol
