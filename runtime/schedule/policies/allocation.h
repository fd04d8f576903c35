// CTAs go, one configuration at a time, to the kernel that would take longest. Adaptive Simultaneous Multi-tenancy for GPUs
// (Bashizade, Li and Lebeck): Algorithm 1 in 3.6, on profiles pruned as in 3.5, with the time that is left from equation 1, which
// counts blocks and not time.
//
// All kernels start at their smallest configuration, one CTA on each SM (line 2). The one with the most time left gets its next
// configuration (lines 6, 7); if all still fit on an SM they are sorted again (9), else it goes back and is done with (11, 12), as it is
// when it has no further one (15). Line 5 has `marked <= size`, one too many.
//
// Without a profile, or with one that does not begin with one CTA: every number of CTAs that fits is a configuration, twice as many are
// twice as fast, and estimate.h says how long that is.
#pragma once

#include <optional>
#include <vector>

#include "runtime/schedule/estimate.h"

namespace smt::runtime::schedule {

// A kernel and the configuration it is at.
struct Allocated {
    Allocated(const Kernel& of, const Device& device, const Resources& limits)
        : kernel(&of), cta(cta_of(of, limits)), most(most_ctas(of, limits)) {
        if (of.profile) known = &of.profile->configurations;
        if (known && (known->empty() || known->front().ctas_per_sm != 1)) known = nullptr;
        alone_ns = remaining_ns(of, device, most);
        left_ns = left_at(0);
    }
    // Of the next configuration; 0: there is none.
    int next_ctas() const {
        const int next = !known ? ctas + 1 : at + 1 < known->size() ? (*known)[at + 1].ctas_per_sm : 0;
        return next <= most ? next : 0;
    }
    void grow() {
        ctas = next_ctas();
        left_ns = left_at(++at);
    }
    double left_at(size_t configuration) const {
        return known ? configured_ns(*kernel, (*known)[configuration]) : alone_ns * most / static_cast<double>(configuration + 1);
    }

    const Kernel* kernel;
    const std::vector<models::Configuration>* known = nullptr;
    Resources cta;
    int most = 1;
    double alone_ns = 0;
    size_t at = 0;
    int ctas = 1;
    double left_ns = 0;
    int rank = 0;   // where not all fit
};

using Allocation = std::vector<Allocated*>;

// Of an SM, beside all of them; nothing: they do not fit.
std::optional<Resources> free_beside(const Allocation& rows, const Resources& limits);

// Reorders them. False, and nothing is given out: not even the start fits.
bool allocate(Allocation& rows, const Resources& limits);

}  // namespace smt::runtime::schedule
