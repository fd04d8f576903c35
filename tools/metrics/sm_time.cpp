#include "tools/metrics/sm_time.h"

#include <algorithm>
#include <bit>

namespace smt::tools::metrics {

// Returns how much of `more` was not covered before.
uint64_t SmTime::cover(std::vector<Span>& spans, Span more) {
    if (spans.size() >= 2 * kSpans) spans.erase(spans.begin(), spans.begin() + kSpans);
    if (spans.empty() || more.first > spans.back().second) {  // mostly
        spans.push_back(more);
        return more.second - more.first;
    }
    const auto first = std::partition_point(spans.begin(), spans.end(),
                                            [&](const Span& each) { return each.second < more.first; });
    auto last = first;
    uint64_t before = 0;
    for (; last != spans.end() && last->first <= more.second; ++last) {
        before += last->second - last->first;
        more = {std::min(more.first, last->first), std::max(more.second, last->second)};
    }
    spans.insert(spans.erase(first, last), more);
    return more.second - more.first - before;
}

void SmTime::restart() {
    for (std::vector<Span>& each : ran_) each.clear();
}

void SmTime::add(const uint64_t (&multiprocessors)[runtime::journal::kPlaceWords], uint64_t start,
                 uint64_t end) {
    if (end <= start) return;
    for (int word = 0; word < runtime::journal::kPlaceWords; ++word) {
        for (uint64_t left = multiprocessors[word]; left; left &= left - 1)
            ns_ += cover(ran_[static_cast<size_t>(64 * word + std::countr_zero(left))], {start, end});
    }
}

}  // namespace smt::tools::metrics
