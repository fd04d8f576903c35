#include "runtime/schedule/policies/placement.h"

#include <cstring>
#include <utility>

namespace smt::runtime::schedule {

namespace {

bool is_known(const Placed& row) { return row.profile && row.profile->footprint; }

int per_sm(const Placed& row, const Resources& limits) {
    const int most = most_ctas(*row.kernel, limits);
    return is_known(row) ? std::clamp(row.profile->footprint->ctas_per_sm, 1, most) : most;
}

}  // namespace

void Placement::begin() {
    changed_ = false;
    next_ = 0;
    for (Placed& row : rows_) row.was_here = std::exchange(row.kernel, nullptr) != nullptr;
}

const Placed& Placement::note(const Kernel& kernel) {
    auto row = rows_.begin() + static_cast<ptrdiff_t>(std::min(next_, rows_.size()));   // mostly they come in the same order
    if (row == rows_.end() || row->id != kernel.id) row = std::find_if(rows_.begin(), rows_.end(), [&](const Placed& each) { return each.id == kernel.id; });
    // Another kernel in the same stream comes last; the next launch of the same one stays where it is.
    if (row != rows_.end() && (row->profile != kernel.profile || row->cta != kernel.cta)) {
        std::rotate(row, std::next(row), rows_.end());
        row = std::prev(rows_.end());
        row->asked.clear();
        row->has.clear();
        row->profile = kernel.profile;
        row->cta = kernel.cta;
        row->total = row->sms = 0;
        row->fits = Placed::kNotMeasured;
        changed_ = true;
    }
    if (row == rows_.end()) {
        row = rows_.emplace(rows_.end());
        row->id = kernel.id;
        row->profile = kernel.profile;
        row->cta = kernel.cta;
        changed_ = true;
    }
    row->kernel = &kernel;
    next_ = static_cast<size_t>(row - rows_.begin()) + 1;
    return *row;
}

bool Placement::end(TimePoint now) {
    bool short_of_room = false;
    for (Placed& row : rows_) {
        if (row.kernel) gaps_.works(row.id, now);
        else gaps_.gone(row.id, now);
        if (!row.kernel && row.was_here) row.gone = now;
        short_of_room |= row.kernel && row.total == 0 && !row.has.empty();   // it was looked for
    }
    changed_ |= std::erase_if(rows_, [&](const Placed& row) { return !row.kernel && (short_of_room || now - row.gone >= gaps_.of(row.id)); }) > 0;
    return changed_;
}

std::optional<Duration> Placement::forgets_after(TimePoint now) const {
    std::optional<Duration> rest;
    for (const Placed& row : rows_) {
        if (row.kernel) continue;
        const Duration left = gaps_.of(row.id) - (now - row.gone);
        rest = std::min(rest.value_or(left), left);
    }
    return rest;
}

void Placement::replace(const Device& device, uint64_t first) {
    for (Placed& row : rows_) row.asked.clear();
    place(device, first);
}

void Placement::place(const Device& device, uint64_t first) {
    measure(limits_of(device));
    const int sms = std::max(1, device.multiprocessors), rows = static_cast<int>(std::max<size_t>(1, rows_.size())), part = std::min((sms + rows - 1) / rows, sms - 1);
    const bool unknown = std::any_of(rows_.begin(), rows_.end(), [](const Placed& row) { return !is_known(row); });
    if (reserved_ != 0 && (!unknown || reserved_ != part)) reserve(unknown ? part : 0);
    place_all(static_cast<size_t>(sms), first);
    if (reserved_ != part && leaves_too_little()) {
        reserve(part);
        place_all(static_cast<size_t>(sms), first);
    }
    share_rest(first);
    for (Placed& row : rows_) row.asked = row.has;
    grow(device);
    for (Placed& row : rows_) tabulate(row);
}

// What a CTA of each takes.
void Placement::measure(const Resources& limits) {
    const bool others = std::exchange(limits_, limits) != limits;
    smallest_ = limits;
    for (Placed& row : rows_) {
        if (row.kernel && (others || row.fits != row.kernel->ctas_per_sm)) {
            row.fits = row.kernel->ctas_per_sm;
            row.each = cta_of(*row.kernel, limits_);
            row.most = per_sm(row, limits_);
        }
        smallest_ = {std::min(smallest_.threads, row.each.threads), std::min(smallest_.registers, row.each.registers), std::min(smallest_.shared_bytes, row.each.shared_bytes),
                     std::min(smallest_.warps, row.each.warps), std::min(smallest_.ctas, row.each.ctas)};
    }
}

// From now on; where that is more than before, some have to move.
void Placement::reserve(int sms) {
    if (std::exchange(reserved_, sms) >= sms) return;
    for (Placed& row : rows_) row.asked.clear();
}

// Those with a footprint, and whose turn it is.
void Placement::place_all(size_t sms, uint64_t first) {
    begin_zones(sms);
    for (Placed& row : rows_) {
        row.has.assign(zones_.size(), 0);
        row.total = 0;
        for (size_t zone = 0; zone < zones_.size(); ++zone) {
            const int asked = row.asked[zone];
            if (asked) put(row, zone, holds(zones_[zone].free, row.each, asked) ? asked : fitting(zones_[zone].free, row.each));
        }
    }
    opened_ = 0;
    for (const Zone& zone : zones_) opened_ += zone.used ? zone.sms : 0;
    for (Placed& row : rows_) {
        if (row.id != first) continue;
        if (is_known(row)) place_known(row);
        else place_part(row, static_cast<int>(rows_.size()));
    }
    for (Placed& row : rows_) {
        if (row.id != first && is_known(row)) place_known(row);
    }
}

// One without a footprint would have less, with all that is left, than with an equal part of the device. Who is away for a gap counts.
bool Placement::leaves_too_little() const {
    const bool whole = std::any_of(zones_.begin(), zones_.end(), [](const Zone& zone) { return !zone.used; });
    return std::any_of(rows_.begin(), rows_.end(), [&](const Placed& row) {
        if (is_known(row)) return false;
        uint64_t ctas = 0;
        for (const Zone& zone : zones_) {
            if (!whole || !zone.used) ctas += static_cast<uint64_t>(std::min(fitting(zone.free, row.each), row.most)) * static_cast<uint64_t>(zone.sms);
        }
        return ctas * rows_.size() < static_cast<uint64_t>(row.most) * sms_;
    });
}

// ---- Zones

// As they were, with what everybody keeps of them: what was room that nobody wanted is free again, and what has no
// footprint moves.
void Placement::begin_zones(size_t sms) {
    const bool others = sms != sms_;   // another device
    if (others) zones_.assign(1, {static_cast<int>(sms), {}});
    sms_ = sms;
    for (Placed& row : rows_) {
        if (others || !is_known(row) || row.asked.size() != zones_.size()) row.asked.assign(zones_.size(), 0);
    }
    merge_zones();
    for (Zone& zone : zones_) zone = {zone.sms, limits_};
}

void Placement::merge_zones() {
    size_t last = 0;
    for (size_t zone = 1; zone < zones_.size(); ++zone) {
        if (std::all_of(rows_.begin(), rows_.end(), [&](const Placed& row) { return row.asked[last] == row.asked[zone]; })) {
            zones_[last].sms += zones_[zone].sms;
            continue;
        }
        zones_[++last] = zones_[zone];
        for (Placed& row : rows_) row.asked[last] = row.asked[zone];
    }
    zones_.resize(last + 1);
    for (Placed& row : rows_) row.asked.resize(last + 1);
}

// While rows' `has` are made.
void Placement::split(size_t zone, int first) {
    if (first >= zones_[zone].sms) return;
    Zone rest = zones_[zone];
    rest.sms -= first;
    zones_[zone].sms = first;
    const auto behind = static_cast<ptrdiff_t>(zone) + 1;
    zones_.insert(zones_.begin() + behind, rest);
    for (Placed& row : rows_) {
        const uint8_t ctas = row.has[zone];
        row.has.insert(row.has.begin() + behind, ctas);
    }
}

// On each SM of it.
void Placement::put(Placed& row, size_t zone, int ctas) {
    if (ctas <= 0) return;
    take(zones_[zone].free, row.each, ctas);
    zones_[zone].used = true;
    zones_[zone].full = !holds(zones_[zone].free, smallest_, 1);
    row.total += ctas * zones_[zone].sms;
    row.has[zone] = static_cast<uint8_t>(row.has[zone] + ctas);
}

void Placement::tabulate(Placed& row) const {
    row.table.resize(sms_);
    row.sms = 0;
    size_t at = 0;
    for (size_t zone = 0; zone < zones_.size();) {
        const uint8_t ctas = row.has[zone];
        size_t sms = 0;
        for (; zone < zones_.size() && row.has[zone] == ctas; ++zone) sms += static_cast<size_t>(zones_[zone].sms);
        std::memset(&row.table[at], ctas, sms);
        if (ctas) row.sms += static_cast<int>(sms);
        at += sms;
    }
}

// ---- The rules

void Placement::place_known(Placed& row) {
    int want = std::max(1, row.profile->footprint->sms * row.profile->footprint->ctas_per_sm) - row.total;
    for (const bool used : {true, false}) {
        for (size_t zone = 0; zone < zones_.size() && want > 0; ++zone) {
            if (zones_[zone].used != used || zones_[zone].full) continue;
            const int room = std::min(fitting(zones_[zone].free, row.each), row.most - row.has[zone]);
            if (room <= 0) continue;
            const int free = used ? zones_[zone].sms : static_cast<int>(sms_) - reserved_ - opened_;
            if (free <= 0) continue;
            const int full = std::min({zones_[zone].sms, want / room, free});   // SMs that are filled
            if (full > 0) {
                split(zone, full);
                put(row, zone, room);
                want -= full * room;
                if (!used) opened_ += full;
                continue;   // what has been split off comes next
            }
            const bool rest = want < row.most && row.total > 0;
            if (!used && rest) continue;
            split(zone, 1);
            put(row, zone, want);
            if (!used) ++opened_;
            want = 0;
        }
    }
}

// One of so many parts of the SMs.
void Placement::place_part(Placed& row, int parts) {
    int left = (static_cast<int>(sms_) + parts - 1) / parts;
    for (size_t zone = 0; zone < zones_.size() && left > 0; ++zone) {
        split(zone, left);
        left -= zones_[zone].sms;
        put(row, zone, std::min(fitting(zones_[zone].free, row.each), row.most));
    }
}

// Those of which nothing is known have the SMs that nobody else uses, all of them together, or what is left on the others.
void Placement::share_rest(uint64_t first) {
    const bool whole = std::any_of(zones_.begin(), zones_.end(), [](const Zone& zone) { return !zone.used; });
    const std::vector<Zone> before = zones_;
    for (Placed& row : rows_) {
        if (is_known(row) || row.id == first) continue;
        for (size_t zone = 0; zone < zones_.size(); ++zone) {
            if (whole && before[zone].used) continue;
            const int ctas = std::min(fitting(before[zone].free, row.each), row.most);
            if (!whole && fitting(zones_[zone].free, row.each) >= ctas) {
                put(row, zone, ctas);   // so that nobody grows into it
            } else {   // how they share it is the hardware's affair
                row.has[zone] = static_cast<uint8_t>(ctas);
                row.total += ctas * zones_[zone].sms;
            }
        }
    }
}

// Whoever has the longest way to go takes first.
void Placement::grow(const Device& device) {
    order_.clear();
    for (size_t i = 0; i < rows_.size(); ++i) {
        if (rows_[i].kernel && is_known(rows_[i])) order_.emplace_back(-remaining_ns(*rows_[i].kernel, device, rows_[i].most), i);
    }
    std::sort(order_.begin(), order_.end());   // by arrival among equals
    for (const auto& [left_ns, i] : order_) {
        Placed& row = rows_[i];
        for (size_t zone = 0; zone < zones_.size(); ++zone) {
            if (!zones_[zone].used || zones_[zone].full || row.has[zone] >= row.most) continue;
            put(row, zone, std::min(fitting(zones_[zone].free, row.each), row.most - row.has[zone]));
        }
    }
}

}  // namespace smt::runtime::schedule
