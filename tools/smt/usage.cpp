// See usage.h.
#include "tools/smt/usage.h"

#include <algorithm>
#include <limits>

#include "tools/smt/log_view.h"

namespace smt::tools {

using runtime::journal::Entry;
using runtime::journal::Kind;

namespace {

// The time that at least one of the spans covers.
uint64_t covered(std::vector<Span> spans) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
    uint64_t total = 0, until = 0;
    for (const Span& each : spans) {
        if (each.end <= until) continue;
        total += each.end - std::max(each.start, until);
        until = each.end;
    }
    return total;
}

struct Seen {
    uint64_t launches = 0;
    bool timed = false;   // it is known when kernels of it ran,
    bool placed = false;  // and where
    std::vector<Span> spans;
    std::map<int, std::vector<Span>> by_multiprocessor;
};

// A launch says where it may have run; only a simulated device knows that it did.
bool says_where(const Entry& entry) { return entry.kind == Kind::kMapping || entry.virtual_time; }

void see(const Entry& entry, Span span, Span window, Seen& seen) {
    span = {std::max(span.start, window.start), std::min(span.end, window.end)};
    seen.timed = true;
    if (says_where(entry)) seen.placed = true;
    if (span.start >= span.end) return;
    seen.spans.push_back(span);
    if (!says_where(entry)) return;
    for (const int sm : placed_on(entry)) seen.by_multiprocessor[sm].push_back(span);
}

}  // namespace

bool timed(const Entry& entry) { return entry.end_ns != 0 && entry.end_ns >= entry.start_ns; }

int64_t timer_shift(const std::vector<Entry>& entries) {
    int64_t shift = std::numeric_limits<int64_t>::max();
    for (const Entry& entry : entries) {
        if (entry.kind == Kind::kMapping && timed(entry) && !entry.virtual_time)
            shift = std::min(shift, static_cast<int64_t>(entry.time_ns - entry.end_ns));
    }
    return shift == std::numeric_limits<int64_t>::max() ? 0 : shift;
}

Span ran(const Entry& entry, int64_t shift) {
    const auto by = entry.kind == Kind::kMapping && !entry.virtual_time ? static_cast<uint64_t>(shift) : 0;
    return {entry.start_ns + by, entry.end_ns + by};
}

RecentUse recent_use(const std::vector<Entry>& entries, uint64_t window_ns, uint64_t now_ns,
                     int multiprocessors) {
    if (entries.empty()) return {};
    const bool is_virtual =
        std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.virtual_time; });
    Span window{std::numeric_limits<uint64_t>::max(), is_virtual ? 0 : now_ns};
    for (const Entry& entry : entries) {
        if ((entry.virtual_time != 0) != is_virtual) continue;
        window.start = std::min(window.start, entry.time_ns);
        if (is_virtual) window.end = std::max({window.end, entry.time_ns, entry.end_ns});
    }
    if (window.start >= window.end) return {};
    window.start = std::max(window.start, window.end - std::min(window.end, window_ns));
    const auto length = static_cast<double>(window.end - window.start);

    const int64_t shift = timer_shift(entries);
    std::map<uint32_t, Seen> sessions;
    for (const Entry& entry : entries) {
        const bool launch = entry.kind == Kind::kLaunch;
        if ((entry.virtual_time != 0) != is_virtual || (!launch && entry.kind != Kind::kMapping)) continue;
        Seen& seen = sessions[entry.session];
        seen.launches += launch && entry.time_ns >= window.start;
        if (timed(entry)) see(entry, ran(entry, shift), window, seen);
    }
    RecentUse use{length / 1e9, {}};
    for (const auto& [session, seen] : sessions) {
        Usage& usage = use.by_session[session];
        usage.launches_per_second = static_cast<double>(seen.launches) / use.seconds;
        if (seen.timed) usage.busy = static_cast<double>(covered(seen.spans)) / length;
        if (!seen.placed || multiprocessors <= 0) continue;
        uint64_t time = 0;
        for (const auto& [sm, spans] : seen.by_multiprocessor) time += covered(spans);
        usage.multiprocessors = static_cast<double>(time) / (length * multiprocessors);
    }
    return use;
}

}  // namespace smt::tools
