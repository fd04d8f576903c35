#include "runtime/schedule/policies/placement.h"

#include <numeric>
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
    auto row = rows_.begin() + static_cast<ptrdiff_t>(find_from(
                                   rows_, next_, [&](const Placed& each) { return each.id == kernel.id; }));
    // Another kernel in the same stream goes last. The next launch of the same kernel keeps its place.
    if (row != rows_.end() && (row->profile != kernel.profile || row->cta != kernel.cta)) {
        std::rotate(row, std::next(row), rows_.end());
        row = std::prev(rows_.end());
        row->column = Placed::kNone;
        row->profile = kernel.profile;
        row->cta = kernel.cta;
        row->placed = false;
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
        next_ = rows_.size();
    }
    row->kernel = &kernel;
    return *row;
}

bool Placement::end(TimePoint now) {
    bool short_of_room = false;
    for (Placed& row : rows_) {
        if (row.kernel && !row.was_here) idle_grace_.works(row.id, now);
        if (!row.kernel && row.was_here) {
            idle_grace_.gone(row.id, now);
            row.gone = now;
        }
        // The packing has run and found no room for it.
        short_of_room |= row.kernel && row.total == 0 && row.placed;
    }
    changed_ |= std::erase_if(rows_, [&](const Placed& row) {
                    return !row.kernel && (short_of_room || now - row.gone >= idle_grace_.of(row.id));
                }) > 0;
    return changed_;
}

std::optional<Duration> Placement::forgets_after(TimePoint now) const {
    std::optional<Duration> rest;
    for (const Placed& row : rows_) {
        if (row.kernel) continue;
        const Duration left = idle_grace_.of(row.id) - (now - row.gone);
        rest = std::min(rest.value_or(left), left);
    }
    return rest;
}

void Placement::forget_places() {
    for (Placed& row : rows_) row.column = Placed::kNone;
}

void Placement::place(const Device& device, uint64_t first, bool anew) {
    if (anew) forget_places();
    measure(limits_of(device));
    const int sms = device.sms(), rows = static_cast<int>(std::max<size_t>(1, rows_.size())),
              part = std::min((sms + rows - 1) / rows, sms - 1);
    const bool unknown = std::ranges::any_of(rows_, [](const Placed& row) { return !is_known(row); });
    if (reserved_ != 0 && (!unknown || reserved_ != part)) reserve(unknown ? part : 0);
    place_all(static_cast<size_t>(sms), first);
    if (reserved_ != part && leaves_too_little()) {
        reserve(part);
        place_all(static_cast<size_t>(sms), first);
    }
    share_rest(first);
    keep();
    grow(device);
    for (Placed& row : rows_) {
        if (row.moved) note_runs(row);
    }
}

// Computes the resources of a CTA of each kernel.
void Placement::measure(const Resources& limits) {
    const bool others = std::exchange(limits_, limits) != limits;
    resized_ = others;
    smallest_ = limits;
    for (Placed& row : rows_) {
        if (row.kernel && (others || row.fits != row.kernel->ctas_per_sm)) {
            row.fits = row.kernel->ctas_per_sm;
            const Resources before = std::exchange(row.each, cta_of(*row.kernel, limits_));
            resized_ |= row.column != Placed::kNone && before != row.each;
            row.most = per_sm(row, limits_);
        }
        smallest_ = {std::min(smallest_.threads, row.each.threads),
                     std::min(smallest_.registers, row.each.registers),
                     std::min(smallest_.shared_bytes, row.each.shared_bytes),
                     std::min(smallest_.warps, row.each.warps), std::min(smallest_.ctas, row.each.ctas)};
    }
}

// Changes the reserve. If it grows, kernels have to move.
void Placement::reserve(int sms) {
    if (std::exchange(reserved_, sms) < sms) forget_places();
}

// Places the kernels with a footprint, and `first`.
void Placement::place_all(size_t sms, uint64_t first) {
    begin_zones(sms);
    opened_ = 0;
    for (const Zone& zone : zones_) opened_ += zone.used ? zone.sms : 0;
    for (Placed& row : rows_) {
        if (row.id != first) continue;
        if (is_known(row))
            place_known(row);
        else
            place_part(row);
    }
    for (Placed& row : rows_) {
        if (row.id != first && is_known(row)) place_known(row);
    }
}

// Whether a kernel without a footprint would get less than an equal part of the device. Kernels in their idle
// grace period count.
bool Placement::leaves_too_little() const {
    const bool whole = std::ranges::any_of(zones_, [](const Zone& zone) { return !zone.used; });
    return std::ranges::any_of(rows_, [&](const Placed& row) {
        if (is_known(row)) return false;
        uint64_t ctas = 0;
        for (const Zone& zone : zones_) {
            if (!whole || !zone.used)
                ctas += static_cast<uint64_t>(fitting(zone.free, row.each, row.most)) *
                        static_cast<uint64_t>(zone.sms);
        }
        return ctas * rows_.size() < static_cast<uint64_t>(row.most) * sms_;
    });
}

// ---- Zones

// Restores the zones with the places that kernels keep. Spare room is free again, and kernels without a
// footprint move.
void Placement::begin_zones(size_t sms) {
    if (std::exchange(sms_, sms) != sms) forget_places();  // another device
    assign_columns();
    zones_ = kept_.zones;
    has_ = kept_.has;
    open_ = 0;
    size_t last = 0;
    bool lost_last = false;
    for (size_t zone = 0; zone < zones_.size(); ++zone) {
        uint8_t* const line = &has_[zone * columns_];
        bool lost = resized_;
        for (const size_t column : left_) lost |= std::exchange(line[column], uint8_t{0}) > 0;
        const bool alike = zone > 0 && (lost || lost_last) &&
                           std::equal(line, line + columns_, &has_[(last - 1) * columns_]);
        if (alike) {
            zones_[last - 1].sms += zones_[zone].sms;
            continue;
        }
        if (last != zone) {
            zones_[last] = zones_[zone];
            std::copy_n(line, columns_, &has_[last * columns_]);
        }
        if (lost) take_kept(last);
        zones_[last].full = !holds(zones_[last].free, smallest_, 1);
        open_ += !zones_[last].full;
        lost_last = lost;
        ++last;
    }
    zones_.resize(last);
    has_.resize(last * columns_);
}

// A kernel with a place keeps its column; the others get free columns.
void Placement::assign_columns() {
    const auto keeps = [](const Placed& row) { return row.column != Placed::kNone; };
    for (Placed& row : rows_) {
        if (!is_known(row)) row.column = Placed::kNone;
        row.moved = !keeps(row);
        if (row.moved) row.kept = 0;
        row.total = row.kept;
    }
    if (columns_ < rows_.size()) widen();
    if (std::ranges::none_of(rows_, keeps))
        kept_ = {{{static_cast<int>(sms_), limits_}}, std::vector<uint8_t>(columns_)};
    stays_.assign(columns_, false);
    for (const Placed& row : rows_) {
        if (keeps(row)) stays_[row.column] = true;
    }
    left_.clear();
    for (size_t column = 0; column < columns_; ++column) {
        if (!stays_[column]) left_.push_back(column);
    }
    size_t next = 0;
    for (Placed& row : rows_) {
        if (!keeps(row)) row.column = left_[next++];
    }
}

void Placement::widen() {
    const size_t before = std::exchange(columns_, (rows_.size() + 7) / 8 * 8);
    std::vector<uint8_t> wider(kept_.zones.size() * columns_);
    for (size_t zone = 0; zone < kept_.zones.size(); ++zone)
        std::copy_n(&kept_.has[zone * before], before, &wider[zone * columns_]);
    kept_.has = std::move(wider);
}

// Takes the kept CTAs again, as many as fit, because CTAs or the SM have changed.
void Placement::take_kept(size_t zone) {
    Zone& at = zones_[zone];
    at.free = limits_;
    at.used = false;
    for (Placed& row : rows_) {
        uint8_t& kept = has(zone, row);
        if (kept == 0) continue;
        const int ctas = fitting(at.free, row.each, kept);
        row.moved |= ctas < kept;
        row.total -= (kept - ctas) * at.sms;
        take(at.free, row.each, ctas);
        at.used |= ctas > 0;
        kept = static_cast<uint8_t>(ctas);
    }
}

// Saves the places for the next time. CTAs that are put from now on use spare room.
void Placement::keep() {
    kept_.zones = zones_;
    kept_.has = has_;
    for (Placed& row : rows_) {
        row.kept = row.total;
        row.placed = true;
        row.moved |= std::exchange(row.grown, false);
    }
}

void Placement::split(size_t zone, int first) {
    if (first >= zones_[zone].sms) return;
    Zone rest = zones_[zone];
    rest.sms -= first;
    zones_[zone].sms = first;
    zones_.insert(zones_.begin() + static_cast<ptrdiff_t>(zone) + 1, rest);
    open_ += !rest.full;
    has_.resize(zones_.size() * columns_);
    const auto columns = static_cast<ptrdiff_t>(columns_);
    std::move_backward(has_.begin() + static_cast<ptrdiff_t>(zone) * columns, has_.end() - columns,
                       has_.end());
}

// Puts so many CTAs on each SM of the zone.
void Placement::put(Placed& row, size_t zone, int ctas) {
    if (ctas <= 0) return;
    Zone& at = zones_[zone];
    take(at.free, row.each, ctas);
    at.used = true;
    if (!at.full && !holds(at.free, smallest_, 1)) {
        at.full = true;
        --open_;
    }
    row.total += ctas * at.sms;
    row.moved = true;
    uint8_t& has_now = has(zone, row);
    has_now = static_cast<uint8_t>(has_now + ctas);
}

// Without a branch for each zone, because the ends of runs are unpredictable.
void Placement::note_runs(Placed& row) {
    std::vector<uint32_t> runs(zones_.size());
    size_t cell = row.column;
    uint32_t* last = runs.data();
    uint32_t run_ctas = has_[cell], run_sms = 0, sms = 0;
    for (const Zone& zone : zones_) {
        const bool goes_on = has_[cell] == run_ctas;
        run_ctas = has_[cell];
        last += !goes_on;
        run_sms = (goes_on ? run_sms : 0u) + static_cast<uint32_t>(zone.sms);
        *last = Placed::run_of(run_ctas, run_sms);
        sms += run_ctas ? static_cast<uint32_t>(zone.sms) : 0u;
        cell += columns_;
    }
    row.sms = static_cast<int>(sms);
    runs.resize(static_cast<size_t>(last + 1 - runs.data()));
    if (row.runs == runs) return;
    row.runs = std::move(runs);
    row.said = false;
}

Quota Placement::table(const Placed& row) {
    Quota table;
    for (const uint32_t run : row.runs)
        table.insert(table.end(), Placed::sms_of(run), static_cast<uint8_t>(Placed::ctas_of(run)));
    return table;
}

// ---- The rules

void Placement::place_known(Placed& row) {
    int want = std::max(1, row.profile->footprint->sms * row.profile->footprint->ctas_per_sm) - row.total;
    for (const bool used : {true, false}) {
        for (size_t zone = 0; zone < zones_.size() && want > 0 && open_ > 0; ++zone) {
            if (zones_[zone].used != used || zones_[zone].full) continue;
            const int room = fitting(zones_[zone].free, row.each, row.most - has(zone, row));
            if (room <= 0) continue;
            const int free = used ? zones_[zone].sms : static_cast<int>(sms_) - reserved_ - opened_;
            if (free <= 0) break;
            const int full = std::min({zones_[zone].sms, want / room, free});  // SMs that are filled
            if (full > 0) {
                split(zone, full);
                put(row, zone, room);
                want -= full * room;
                if (!used) opened_ += full;
                continue;  // the split-off zone comes next
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

// Gives the kernel an equal part of the SMs.
void Placement::place_part(Placed& row) {
    const int parts = static_cast<int>(rows_.size());
    int left = (static_cast<int>(sms_) + parts - 1) / parts;
    for (size_t zone = 0; zone < zones_.size() && left > 0; ++zone) {
        split(zone, left);
        left -= zones_[zone].sms;
        put(row, zone, fitting(zones_[zone].free, row.each, row.most));
    }
}

// Kernels without a footprint use the free SMs, all together, or else the spare room on the others.
void Placement::share_rest(uint64_t first) {
    if (std::ranges::all_of(rows_, is_known)) return;
    const bool whole = std::ranges::any_of(zones_, [](const Zone& zone) { return !zone.used; });
    const std::vector<Zone> before = zones_;
    for (Placed& row : rows_) {
        if (is_known(row) || row.id == first) continue;
        for (size_t zone = 0; zone < zones_.size(); ++zone) {
            if (whole && before[zone].used) continue;
            const int ctas = fitting(before[zone].free, row.each, row.most);
            if (!whole && holds(zones_[zone].free, row.each, ctas)) {
                put(row, zone, ctas);  // reserves the room, so that grow() does not use it
            } else {                   // the hardware shares it
                has(zone, row) = static_cast<uint8_t>(ctas);
                row.total += ctas * zones_[zone].sms;
            }
        }
    }
}

// Gives spare room to the kernel with the most time left first.
void Placement::grow(const Device& device) {
    const auto has_room = [](const Zone& zone) { return zone.used && !zone.full; };
    if (std::ranges::none_of(zones_, has_room)) return;
    order_.clear();
    for (Placed& row : rows_) {
        if (row.kernel && is_known(row))
            order_.emplace_back(-remaining_ns(*row.kernel, device, row.most), &row);
    }
    std::ranges::sort(order_);  // ties are broken by arrival
    for (size_t zone = 0; zone < zones_.size(); ++zone) {
        if (!has_room(zones_[zone])) continue;
        for (const auto& [left_ns, row] : order_) {
            if (const int ctas = fitting(zones_[zone].free, row->each, row->most - has(zone, *row))) {
                put(*row, zone, ctas);
                row->grown = true;
            }
            if (zones_[zone].full) break;
        }
    }
}

}  // namespace smt::runtime::schedule
