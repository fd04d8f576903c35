// Whether launches that were under way may be executed again from their beginning.
//
// Of a stream all that may have been under way is executed again, in order. Memory is then what any part of
// these launches has made of it. A launch computes the same as it would have, if what it reads is right:
// either an earlier one of those writes it, which is executed again in front of it, or none of them wrote it.
// So no launch may read what it or a later one writes. What has been written and is not read does no harm, as
// it is written again.
//
// Streams go on in no order among each other. So what is executed again has nothing in common with launches
// of other streams, those that are over or kept back included, but what both only read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace smt::runtime::server {

struct MemoryRange {
    uint64_t begin = 0, end = 0;
    bool meets(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
    bool operator==(const MemoryRange&) const = default;
};
using MemoryRanges = std::vector<MemoryRange>;

struct LaunchEffects {
    uint32_t stream = 0;
    bool again = false;  // it is to be executed again
    std::string kernel;
    MemoryRanges reads, writes;
};

inline bool meet(const MemoryRanges& some, const MemoryRanges& others) {
    return std::any_of(some.begin(), some.end(), [&](const MemoryRange& each) {
        return std::any_of(others.begin(), others.end(),
                           [&](const MemoryRange& other) { return each.meets(other); });
    });
}

// In the order in which they were made; the first is executed again. Empty: they may be; else why not.
inline std::string why_not_repeatable(const std::vector<LaunchEffects>& launches) {
    for (size_t i = 0; i < launches.size(); ++i) {
        const LaunchEffects& one = launches[i];
        if (!one.again) continue;
        for (size_t j = 0; j < launches.size(); ++j) {
            const LaunchEffects& other = launches[j];
            const bool apart = other.stream != one.stream;
            if ((apart || j >= i) && meet(one.reads, other.writes))
                return "kernel " + one.kernel + " reads memory that " +
                       (i == j ? "it" : "kernel " + other.kernel + " behind or beside it") + " writes";
            if (apart && (meet(one.writes, other.reads) || meet(one.writes, other.writes)))
                return "kernels " + one.kernel + " and " + other.kernel + " of two streams use one memory";
        }
    }
    return {};
}

}  // namespace smt::runtime::server
