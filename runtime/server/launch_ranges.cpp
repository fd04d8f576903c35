#include "runtime/server/launch_ranges.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace smt::runtime::server {

namespace {

// What a launch reads or writes by one of these parameters. Nothing: it is not known. A pointer to the end of
// an allocation, where another one begins, counts as one to the other: that is where neighbours begin.
std::optional<MemoryRange> range_of(const ptx::Origins& origins, const char* parameters, uint32_t bytes,
                                    const TenantMemory& memory) {
    std::optional<MemoryRange> found;
    bool any = false;
    for (const uint32_t offset : origins) {
        uint64_t word = 0;
        if (offset > bytes || bytes - offset < sizeof word) return std::nullopt;
        std::memcpy(&word, parameters + offset, sizeof word);
        if (word == 0) continue;
        any = true;
        BlockAllocator::Block block = memory.find(word);
        if (block.bytes == 0) block = memory.find(word - 1);  // its end
        if (block.bytes == 0 && (memory.may_touch(word, 1) || memory.may_touch(word - 1, 1)))
            return std::nullopt;  // host memory, or a variable
        if (block.bytes == 0) continue;
        if (found) return std::nullopt;
        found = MemoryRange{block.base, block.base + block.bytes};
    }
    return any ? found : MemoryRange{};  // a null pointer is not followed
}

bool add(const std::set<ptx::Origins>& all, const char* parameters, uint32_t bytes,
         const TenantMemory& memory, MemoryRanges* ranges) {
    for (const ptx::Origins& origins : all) {
        const std::optional<MemoryRange> range = range_of(origins, parameters, bytes, memory);
        if (!range) return false;
        ranges->push_back(*range);
    }
    return true;
}

}  // namespace

std::optional<LaunchRanges> ranges_of(const ptx::Effects& effects, const char* parameters, uint32_t bytes,
                                      const TenantMemory& memory) {
    LaunchRanges ranges;
    if (!add(effects.reads, parameters, bytes, memory, &ranges.reads) ||
        !add(effects.writes, parameters, bytes, memory, &ranges.writes))
        return std::nullopt;
    return ranges;
}

bool repeats(const ptx::Effects& effects, const char* parameters, uint32_t bytes,
             const TenantMemory& memory) {
    const std::optional<LaunchRanges> ranges = ranges_of(effects, parameters, bytes, memory);
    return ranges && !meet(ranges->reads, ranges->writes) &&
           std::ranges::none_of(ranges->writes, [&](const MemoryRange& each) {
               return each.begin != each.end && memory.reserved(each.begin, 1);
           });
}

}  // namespace smt::runtime::server
