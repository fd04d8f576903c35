// The time that a tenant's blocks were on multiprocessors, added up over these: of what ran on one at the
// same time, each moment counts once. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/journal/journal.h"

namespace smt::tools::metrics {

class SmTime {
public:
    // Entries come nearly in the order of their ends.
    void add(const uint64_t (&multiprocessors)[runtime::journal::kPlaceWords], uint64_t start, uint64_t end);
    void restart();  // another clock begins
    uint64_t ns() const { return ns_; }

private:
    using Span = std::pair<uint64_t, uint64_t>;  // start, end
    static constexpr size_t kSpans = 64;  // that are kept: a kernel that reaches back further may count twice

    static uint64_t cover(std::vector<Span>& spans, Span more);

    // By multiprocessor; ascending, without overlap.
    std::array<std::vector<Span>, size_t{64} * runtime::journal::kPlaceWords> ran_;
    uint64_t ns_ = 0;
};

}  // namespace smt::tools::metrics
