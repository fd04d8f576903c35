#include "runtime/schedule/policies/allocation.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::schedule {

namespace {

// Ties are broken by id, so that the same snapshot gives the same quotas.
bool takes_longer(const Allocated* a, const Allocated* b) {
    return a->left_ns != b->left_ns ? a->left_ns > b->left_ns : a->kernel->id < b->kernel->id;
}

}  // namespace

std::optional<Resources> free_beside(const Allocation& rows, const Resources& limits) {
    Resources free = limits;
    for (const Allocated* row : rows) {
        if (!holds(free, row->cta, row->ctas)) return std::nullopt;
        take(free, row->cta, row->ctas);
    }
    return free;
}

bool allocate(Allocation& rows, const Resources& limits) {
    std::optional<Resources> free = free_beside(rows, limits);
    if (!free) return false;
    std::ranges::sort(rows, takes_longer);
    for (size_t marked = 0; marked < rows.size();) {
        Allocated& row = *rows[marked];
        const int more = row.next_ctas() - row.ctas;
        if (more <= 0 || !holds(*free, row.cta, more)) {
            ++marked;
            continue;
        }
        take(*free, row.cta, more);
        row.grow();
        // Only this row has changed, so one insertion restores the order.
        for (size_t at = marked + 1; at < rows.size() && takes_longer(rows[at], rows[at - 1]); ++at)
            std::swap(rows[at], rows[at - 1]);
    }
    return true;
}

}  // namespace smt::runtime::schedule
