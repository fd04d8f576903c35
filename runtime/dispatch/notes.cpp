#include "runtime/dispatch/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace smt::runtime::dispatch {

journal::Entry Notes::entry(journal::Kind kind, const Tenant& tenant) const {
    journal::Entry entry;
    entry.kind = kind;
    entry.session = tenant.session;
    if (kind != journal::Kind::kNote) entry.name = tenant.journal_name;
    return entry;
}

void Notes::line(journal::Kind kind, const Tenant& tenant, const std::string& text) {
    journal::Entry entry = this->entry(kind, tenant);
    entry.text = journal_.line(text);
    write(entry);
}

void Notes::refused(const Tenant& tenant, CUresult why) {
    note(tenant,
         fmt::format("a kernel stays on all multiprocessors: on fewer the driver refused it with error {}",
                     static_cast<int>(why)));
}

void Notes::note_if_long(const Tenant& tenant, const char* what, schedule::TimePoint since) {
    constexpr auto kLong = std::chrono::milliseconds(10);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(schedule::Clock::now() - since);
    if (took >= kLong && !device_.properties().keeps_clock)
        note(tenant, fmt::format("the dispatcher was held up for {} ms: {}", took.count(), what));
}

void Notes::stopped(const Tenant& tenant, uint32_t kernel_name, uint64_t said_ns, uint64_t over_ns,
                    const LongestTicket& longest, uint64_t lost) {
    journal::Entry entry = this->entry(journal::Kind::kStopped, tenant);
    entry.text = kernel_name;
    entry.time_ns = over_ns;
    entry.value = over_ns - said_ns;
    entry.start_ns = longest.start_ns;
    entry.end_ns = longest.end_ns;
    entry.blocks_together = longest.blocks;
    entry.grid[0] = static_cast<uint32_t>(std::min<uint64_t>(lost, ~0u));
    write(entry);
}

void Notes::saturating(const Tenant& tenant, const std::string& kernel, uint32_t ctas, uint32_t fits) {
    note(tenant,
         fmt::format(
             "{}: where it may be stopped {} CTAs run on a multiprocessor; the {} that fit get no more done",
             kernel, ctas, fits));
}

void Notes::mappings(const Tenant& tenant, uint32_t kernel_name, const std::vector<smt::Mapping>& mappings) {
    journal::Entry entry = this->entry(journal::Kind::kMapping, tenant);
    entry.text = kernel_name;
    for (const smt::Mapping& each : mappings) {
        entry.multiprocessors[each.sm / 64 % journal::kPlaceWords] |= 1ull << each.sm % 64;
        entry.value += each.blocks;
        entry.blocks_together += 1;
        if (entry.start_ns == 0 || each.began < entry.start_ns) entry.start_ns = each.began;
        entry.end_ns = std::max<uint64_t>(entry.end_ns, each.ended);
    }
    if (!mappings.empty()) write(entry);
}

void Notes::gpu_time(const Tenant& tenant, uint64_t stream, const KernelTimes::Which& which,
                     const KernelTimes::Sum& sum) {
    journal::Entry entry = this->entry(journal::Kind::kGpuTime, tenant);
    entry.name = which.name;
    entry.text = tenant.journal_name;
    entry.value = which.treatment;
    entry.stream = static_cast<uint32_t>(stream);
    entry.start_ns = sum.one_wave_ns;
    entry.end_ns = sum.ns;
    entry.grid[0] = static_cast<uint32_t>(sum.launches);
    entry.grid[1] = static_cast<uint32_t>(sum.launches >> 32);
    write(entry);
}

void Notes::placed(const Tenant& tenant, const Placement::Sums& sums) {
    if (sums.tables == 0) return;
    note(tenant, fmt::format("placed by {} tables of quotas: {} blocks by {} workers, {} blocks astray, {} "
                             "workers at most on a "
                             "multiprocessor, {} above its quota, {} workers not known",
                             sums.tables, sums.blocks, sums.workers, sums.astray, sums.fullest, sums.beyond,
                             sums.lost));
}

}  // namespace smt::runtime::dispatch
