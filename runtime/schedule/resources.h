// Resources of a CTA and of a multiprocessor, and quotas: the number of CTAs that a kernel may have on each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace smt::runtime::schedule {

// For a CTA: what it takes. For an SM: what it has.
struct Resources {
    uint32_t threads = 0;
    uint32_t registers = 0;     // of all threads, as the hardware allocates them
    uint32_t shared_bytes = 0;  // static, dynamic, and the system's reserve for each CTA
    uint32_t warps = 0;
    uint32_t ctas = 0;  // of a CTA: 1; of an SM: the maximum at a time

    bool operator==(const Resources&) const = default;
};

// Whether `count` CTAs fit into the free resources.
inline bool holds(const Resources& free, const Resources& cta, int count) {
    const auto n = static_cast<uint64_t>(count);
    return n * cta.ctas <= free.ctas && n * cta.threads <= free.threads &&
           n * cta.registers <= free.registers && n * cta.shared_bytes <= free.shared_bytes &&
           n * cta.warps <= free.warps;
}

// The number of CTAs that fit into the free resources. Divides: where the count is known, holds() is faster.
inline int fitting(const Resources& free, const Resources& cta) {
    if (!holds(free, cta, 1)) return 0;  // most SMs are full while kernels are placed
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

// At most `most`. The results 0, 1 and `most` need no division.
inline int fitting(const Resources& free, const Resources& cta, int most) {
    if (most <= 0 || !holds(free, cta, 1)) return 0;
    if (holds(free, cta, most)) return most;
    return holds(free, cta, 2) ? std::min(fitting(free, cta), most) : 1;
}

// The CTAs must fit.
inline void take(Resources& free, const Resources& cta, int count) {
    const auto n = static_cast<uint32_t>(count);
    free.threads -= n * cta.threads;
    free.registers -= n * cta.registers;
    free.shared_bytes -= n * cta.shared_bytes;
    free.warps -= n * cta.warps;
    free.ctas -= n * cta.ctas;
}

// CTAs of a kernel on each SM. Empty: as many as fit. One number: the same on each SM. Else one number for
// each SM, by index.
using Quota = std::vector<uint8_t>;

inline Quota even_quota(int ctas) { return {static_cast<uint8_t>(ctas)}; }

}  // namespace smt::runtime::schedule
