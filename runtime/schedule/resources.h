// What a CTA takes of a multiprocessor, and how many CTAs a kernel may have on each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace smt::runtime::schedule {

// Of a CTA: what it takes. Of an SM: what it has.
struct Resources {
    uint32_t threads = 0;
    uint32_t registers = 0;     // of all its threads, as the hardware allots them
    uint32_t shared_bytes = 0;  // static, dynamic, and what the system keeps of each CTA
    uint32_t warps = 0;
    uint32_t ctas = 0;  // of a CTA: 1; of an SM: the most at once

    bool operator==(const Resources&) const = default;
};

// Whether so many of `cta` fit into what is free.
inline bool holds(const Resources& free, const Resources& cta, int count) {
    const auto n = static_cast<uint64_t>(count);
    return n * cta.ctas <= free.ctas && n * cta.threads <= free.threads && n * cta.registers <= free.registers && n * cta.shared_bytes <= free.shared_bytes &&
           n * cta.warps <= free.warps;
}

// How many more of `cta` fit into what is free. Divisions are slow, so who knows a number asks holds().
inline int fitting(const Resources& free, const Resources& cta) {
    if (!holds(free, cta, 1)) return 0;   // most SMs are full while kernels are placed
    uint32_t most = UINT16_MAX;
    const auto bound = [&](uint32_t room, uint32_t each) {
        if (each) most = std::min(most, room / each);
    };
    bound(free.threads, cta.threads);
    bound(free.registers, cta.registers);
    bound(free.shared_bytes, cta.shared_bytes);
    bound(free.warps, cta.warps);
    bound(free.ctas, cta.ctas);
    return static_cast<int>(most);
}

// No more than `most`; none or one, or all of them, without a division.
inline int fitting(const Resources& free, const Resources& cta, int most) {
    if (most <= 0 || !holds(free, cta, 1)) return 0;
    if (holds(free, cta, most)) return most;
    return holds(free, cta, 2) ? std::min(fitting(free, cta), most) : 1;
}

// Nothing is taken that does not fit.
inline void take(Resources& free, const Resources& cta, int count) {
    const auto n = static_cast<uint32_t>(count);
    free.threads -= n * cta.threads;
    free.registers -= n * cta.registers;
    free.shared_bytes -= n * cta.shared_bytes;
    free.warps -= n * cta.warps;
    free.ctas -= n * cta.ctas;
}

// CTAs of a kernel on each SM. Empty: as many as fit. One number: the same on each. Else one for each SM, by
// its index.
using Quota = std::vector<uint8_t>;

inline Quota even_quota(int ctas) { return {static_cast<uint8_t>(ctas)}; }

}  // namespace smt::runtime::schedule
