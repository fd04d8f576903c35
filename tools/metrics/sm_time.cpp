#include "tools/metrics/sm_time.h"

#include <algorithm>
#include <bit>

namespace smt::tools::metrics {

// Returns how much of `more` was not covered before.
uint64_t SmTime::cover(std::vector<Span>& spans, Span more) {
    const auto first = std::partition_point(spans.begin(), spans.end(),
                                            [&](const Span& each) { return each.second < more.first; });
    auto last = first;
    uint64_t before = 0;
    for (; last != spans.end() && last->first <= more.second; ++last) {
        before += last->second - last->first;
        more = {std::min(more.first, last->first), std::max(more.second, last->second)};
    }
    spans.insert(spans.erase(first, last), more);
    if (spans.size() > kMostSpans) spans.erase(spans.begin());
    return more.second - more.first - before;
}

void SmTime::add(const uint64_t (&multiprocessors)[runtime::journal::kPlaceWords], uint64_t start,
                 uint64_t end) {
    if (end <= start) return;
    for (int word = 0; word < runtime::journal::kPlaceWords; ++word) {
        for (uint64_t left = multiprocessors[word]; left; left &= left - 1)
            ns_ += cover(ran_[64 * word + std::countr_zero(left)], {start, end});
    }
}

}  // namespace smt::tools::metrics
