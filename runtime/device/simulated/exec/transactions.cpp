#include "runtime/device/simulated/exec/transactions.h"

#include <algorithm>
#include <array>
#include <bit>

namespace smt::runtime::device::simulated {
namespace {

uint16_t count_distinct(uint64_t* values, int count) {
    if (count == 0) return 0;
    int changes = 1;
    bool sorted = true;
    for (int i = 1; i < count; ++i) {
        changes += values[i] != values[i - 1] ? 1 : 0;
        sorted &= values[i] >= values[i - 1];
    }
    if (!sorted) {
        std::sort(values, values + count);
        changes = static_cast<int>(std::unique(values, values + count) - values);
    }
    return static_cast<uint16_t>(changes);
}

template <class F>
uint16_t distinct_of(uint32_t mask, F value) {
    uint64_t values[32];
    int count = 0;
    for (; mask != 0; mask &= mask - 1) values[count++] = value(std::countr_zero(mask));
    return count_distinct(values, count);
}

// One phase: some lanes, each with `words` words from its address on.
uint16_t passes_of(const uint64_t* addresses, uint32_t mask, uint32_t words) {
    uint64_t first = ~0ull;
    bool in_line = true;  // lane after lane, or all the same: the usual cases
    bool same = true;
    uint64_t expected = 0;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const uint64_t word = addresses[std::countr_zero(rest)] / 4;
        if (first == ~0ull) first = expected = word;
        in_line &= word == expected;
        same &= word == first;
        expected = word + words;
    }
    if (in_line || same) return 1;
    std::array<std::array<uint64_t, 32>, 32> held;  // words by bank
    std::array<uint8_t, 32> count{};
    uint16_t most = 0;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        for (uint32_t w = 0; w < words; ++w) {
            const uint64_t word = addresses[std::countr_zero(rest)] / 4 + w;
            const size_t bank = word % 32;
            const auto begin = held[bank].begin();
            if (std::find(begin, begin + count[bank], word) != begin + count[bank] || count[bank] == 32)
                continue;
            held[bank][count[bank]++] = word;
            most = std::max<uint16_t>(most, count[bank]);
        }
    }
    return most;
}

}  // namespace

uint16_t count_sectors(const uint64_t* addresses, uint32_t mask) {
    return distinct_of(mask, [&](int lane) { return addresses[lane] >> 5; });
}

uint16_t count_passes(const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
    if (bytes <= 4) return passes_of(addresses, mask, 1);
    const int lanes = bytes <= 8 ? 16 : 8;
    uint16_t passes = 0;
    for (int from = 0; from < 32; from += lanes) {
        const uint32_t part = mask & (((1u << lanes) - 1) << from);
        if (part != 0) passes = static_cast<uint16_t>(passes + passes_of(addresses, part, bytes / 4));
    }
    return passes;
}

uint16_t count_local_sectors(const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
    const uint16_t sectors = distinct_of(
        mask, [&](int lane) { return (addresses[lane] / 4 * 32 + static_cast<uint64_t>(lane)) * 4 >> 5; });
    return static_cast<uint16_t>(sectors * std::max(1u, bytes / 4));
}

}  // namespace smt::runtime::device::simulated
