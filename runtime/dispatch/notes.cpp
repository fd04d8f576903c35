// What the dispatcher writes to the journal: decisions, stops, mappings, and sums over a stream's runs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

void Dispatcher::say(const Tenant& tenant, const std::string& reason) {
    journal::Entry entry;
    entry.kind = journal::Kind::kDecision;
    entry.session = tenant.session;
    entry.name = tenant.journal_name;
    entry.text = journal_.line(reason);
    device_.write(journal_, entry, nullptr);
}

void Dispatcher::note(const Tenant& tenant, const std::string& line) {
    journal::Entry entry;
    entry.kind = journal::Kind::kNote;
    entry.session = tenant.session;
    entry.text = journal_.line(line);
    device_.write(journal_, entry, nullptr);
}

// Calls of the driver wait for each other, for example for memory that is mapped or code that is loaded. What
// waits for the dispatcher waits with it.
void Dispatcher::note_if_long(const Tenant& tenant, const char* what, schedule::TimePoint since) {
    constexpr auto kLong = std::chrono::milliseconds(10);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(schedule::Clock::now() - since);
    if (took >= kLong && !device_.properties().keeps_clock)
        note(tenant, fmt::format("the dispatcher was held up for {} ms: {}", took.count(), what));
}

void Dispatcher::report_stop(const Tenant& tenant, uint32_t kernel_name, uint64_t said_ns, uint64_t over_ns,
                             const LongestTicket& longest) {
    journal::Entry entry;
    entry.kind = journal::Kind::kStopped;
    entry.session = tenant.session;
    entry.name = tenant.journal_name;
    entry.text = kernel_name;
    entry.time_ns = over_ns;
    entry.value = over_ns - said_ns;
    entry.start_ns = longest.start_ns;
    entry.end_ns = longest.end_ns;
    entry.blocks_together = longest.blocks;
    device_.write(journal_, entry, nullptr);
}

void Dispatcher::report_saturating(const Tenant& tenant, const std::string& kernel, uint32_t ctas,
                                   uint32_t fits) {
    note(tenant,
         fmt::format(
             "{}: where it may be stopped {} CTAs run on a multiprocessor; the {} that fit get no more done",
             kernel, ctas, fits));
}

void Dispatcher::report(const Tenant& tenant, uint32_t kernel_name,
                        const std::vector<smt::Mapping>& mappings) {
    journal::Entry entry;
    entry.kind = journal::Kind::kMapping;
    entry.session = tenant.session;
    entry.name = tenant.journal_name;
    entry.text = kernel_name;
    for (const smt::Mapping& each : mappings) {
        entry.multiprocessors[each.sm / 64 % journal::kPlaceWords] |= 1ull << each.sm % 64;
        entry.value += each.blocks;
        entry.blocks_together += 1;
        if (entry.start_ns == 0 || each.began < entry.start_ns) entry.start_ns = each.began;
        entry.end_ns = std::max<uint64_t>(entry.end_ns, each.ended);
    }
    if (!mappings.empty()) device_.write(journal_, entry, nullptr);
}

// The sums of a stream's runs, at its end.
void Dispatcher::sum_up(Member& member) {
    const Tenant& tenant = member.stream->tenant();
    if (member.trial) note(tenant, member.trial->summary());
    const Placement::Sums sums = member.stream->placement();
    if (sums.tables == 0) return;
    note(tenant, fmt::format("placed by {} tables of quotas: {} blocks by {} workers, {} blocks astray, {} "
                             "workers at most on a "
                             "multiprocessor, {} above its quota, {} workers not known",
                             sums.tables, sums.blocks, sums.workers, sums.astray, sums.fullest, sums.beyond,
                             sums.lost));
}

void Dispatcher::say_durations() {
    if (decisions_.count() == 0) return;
    note({}, fmt::format("policy {} decided {} times: half of them took it {:.2f} us, 99 % {:.2f}, the "
                         "longest {:.2f}; looked at and carried out in {:.2f}, {:.2f}, {:.2f}",
                         policy_->name(), decisions_.count(), deciding_.quantile_us(.5),
                         deciding_.quantile_us(.99), deciding_.most_us(), decisions_.quantile_us(.5),
                         decisions_.quantile_us(.99), decisions_.most_us()));
    deciding_ = decisions_ = {};
}

}  // namespace smt::runtime::dispatch
