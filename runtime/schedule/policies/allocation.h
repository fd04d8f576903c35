// CTA allocation by Adaptive Simultaneous Multi-tenancy for GPUs (Bashizade, Li and Lebeck): Algorithm 1 in
// 3.6, on profiles pruned as in 3.5. CTAs go, one configuration at a time, to the kernel with the most time
// left. The time left comes from equation 1, which counts blocks and not time.
//
// All kernels start at their smallest configuration, one CTA on each SM (line 2). The kernel with the most
// time left gets its next configuration (lines 6, 7). If all kernels still fit on an SM, they are sorted
// again (9). Else the kernel gives the configuration back and is finished (11, 12). A kernel without a next
// configuration is finished, too (15). The paper's line 5 has `marked <= size`, one too many.
//
// A kernel without a profile, or with one that does not begin with one CTA, has every number of CTAs that
// fits as a configuration. Twice as many CTAs are taken to be twice as fast, from the time by estimate.h.
#pragma once

#include <optional>
#include <vector>

#include "runtime/schedule/estimate.h"

namespace smt::runtime::schedule {

// A kernel and its current configuration.
struct Allocated {
    Allocated(const Kernel& of, const Device& device, const Resources& limits)
        : kernel(&of), cta(cta_of(of, limits)), most(most_ctas(of, limits)) {
        if (of.profile) known = &of.profile->configurations;
        if (known && (known->empty() || known->front().ctas_per_sm != 1)) known = nullptr;
        alone_ns = remaining_ns(of, device, most);
        left_ns = left_at(0);
    }
    // CTAs of the next configuration; 0: there is none.
    int next_ctas() const {
        const int next = !known ? ctas + 1 : at + 1 < known->size() ? (*known)[at + 1].ctas_per_sm : 0;
        return next <= most ? next : 0;
    }
    void grow() {
        ctas = next_ctas();
        left_ns = left_at(++at);
    }
    double left_at(size_t configuration) const {
        return known ? configured_ns(*kernel, (*known)[configuration])
                     : alone_ns * most / static_cast<double>(configuration + 1);
    }

    const Kernel* kernel;
    const std::vector<models::Configuration>* known = nullptr;
    Resources cta;
    int most = 1;
    double alone_ns = 0;
    size_t at = 0;
    int ctas = 1;
    double left_ns = 0;
    int rank = 0;  // for `greedy`, where not all kernels fit
};

using Allocation = std::vector<Allocated*>;

// The resources of an SM that all rows leave free; nothing: the rows do not fit together.
std::optional<Resources> free_beside(const Allocation& rows, const Resources& limits);

// Reorders the rows. False: the smallest configurations do not fit together, and nothing is allocated.
bool allocate(Allocation& rows, const Resources& limits);

}  // namespace smt::runtime::schedule
