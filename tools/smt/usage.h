// How much of a device each session used lately, as far as the journal tells.
//
// Kernels count where it is known when they ran: on a simulated device, with SMT_JOURNAL=times, or with
// SMT_JOURNAL=mapping. Multiprocessors count where it is known which of them ran a kernel: on a simulated
// device, or, of managed kernels, with SMT_JOURNAL=mapping. What ran on one at the same time counts once for
// each session.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/journal/journal.h"

namespace smt::tools {

// Where an entry stands on the journal's clock.
struct Span {
    uint64_t start = 0;
    uint64_t end = 0;  // the start, if it is not known how long it took
};

// How far the GPU's timer, which workers of managed kernels write down, is behind the journal's clock: by as
// much as brings the entry that followed its kernel soonest to that kernel's end.
int64_t timer_shift(const std::vector<runtime::journal::Entry>& entries);
bool timed(const runtime::journal::Entry& entry);
// Of a launch or a mapping that is timed.
Span ran(const runtime::journal::Entry& entry, int64_t shift);

struct Usage {
    double launches_per_second = 0;
    std::optional<double> busy;             // part of the time in which a kernel of it ran
    std::optional<double> multiprocessors;  // part of all of them that it had, on average
};

struct RecentUse {
    double seconds = 0;  // that were looked at, by the device's clock; 0: nothing has happened
    std::map<uint32_t, Usage> by_session;
};

// The last `window_ns` before `now_ns` (a simulated device: before its newest entry), or since the oldest
// entry.
RecentUse recent_use(const std::vector<runtime::journal::Entry>& entries, uint64_t window_ns, uint64_t now_ns,
                     int multiprocessors);

}  // namespace smt::tools
