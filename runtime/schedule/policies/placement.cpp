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
    auto row = rows_.begin() + static_cast<ptrdiff_t>(find_from(rows_, next_, [&](const Placed& each) { return each.id == kernel.id; }));
    // Another kernel in the same stream comes last; the next launch of the same one stays where it is.
    if (row != rows_.end() && (row->profile != kernel.profile || row->cta != kernel.cta)) {
        std::rotate(row, std::next(row), rows_.end());
        row = std::prev(rows_.end());
        row->keeps = Placed::kNew;
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
        if (row.kernel && !row.was_here) gaps_.works(row.id, now);
        if (!row.kernel && row.was_here) {
            gaps_.gone(row.id, now);
            row.gone = now;
        }
        short_of_room |= row.kernel && row.total == 0 && row.placed;   // it was looked for
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
    forget_places();
    place(device, first);
}

void Placement::forget_places() {
    for (Placed& row : rows_) row.keeps = Placed::kNew;
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
    keep();
    grow(device);
    for (size_t row = 0; row < rows_.size(); ++row) {
        if (rows_[row].moved) note_runs(row);
    }
}

// What a CTA of each takes.
void Placement::measure(const Resources& limits) {
    const bool others = std::exchange(limits_, limits) != limits;
    resized_ = others;
    smallest_ = limits;
    for (Placed& row : rows_) {
        if (row.kernel && (others || row.fits != row.kernel->ctas_per_sm)) {
            row.fits = row.kernel->ctas_per_sm;
            const Resources before = std::exchange(row.each, cta_of(*row.kernel, limits_));
            resized_ |= row.keeps != Placed::kNew && before != row.each;
            row.most = per_sm(row, limits_);
        }
        smallest_ = {std::min(smallest_.threads, row.each.threads), std::min(smallest_.registers, row.each.registers), std::min(smallest_.shared_bytes, row.each.shared_bytes),
                     std::min(smallest_.warps, row.each.warps), std::min(smallest_.ctas, row.each.ctas)};
    }
}

// From now on; where that is more than before, some have to move.
void Placement::reserve(int sms) {
    if (std::exchange(reserved_, sms) < sms) forget_places();
}

// Those with a footprint, and whose turn it is.
void Placement::place_all(size_t sms, uint64_t first) {
    begin_zones(sms);
    opened_ = 0;
    for (const Zone& zone : zones_) opened_ += zone.used ? zone.sms : 0;
    for (size_t row = 0; row < rows_.size(); ++row) {
        if (rows_[row].id != first) continue;
        if (is_known(rows_[row])) place_known(row);
        else place_part(row);
    }
    for (size_t row = 0; row < rows_.size(); ++row) {
        if (rows_[row].id != first && is_known(rows_[row])) place_known(row);
    }
}

// One without a footprint would have less, with all that is left, than with an equal part of the device. Who is away for a gap counts.
bool Placement::leaves_too_little() const {
    const bool whole = std::any_of(zones_.begin(), zones_.end(), [](const Zone& zone) { return !zone.used; });
    return std::any_of(rows_.begin(), rows_.end(), [&](const Placed& row) {
        if (is_known(row)) return false;
        uint64_t ctas = 0;
        for (const Zone& zone : zones_) {
            if (!whole || !zone.used) ctas += static_cast<uint64_t>(fitting(zone.free, row.each, row.most)) * static_cast<uint64_t>(zone.sms);
        }
        return ctas * rows_.size() < static_cast<uint64_t>(row.most) * sms_;
    });
}

// ---- Zones

// As they were, with what everybody keeps of them: what was room that nobody wanted is free again, and what has no
// footprint moves.
void Placement::begin_zones(size_t sms) {
    if (std::exchange(sms_, sms) != sms) forget_places();   // another device
    const size_t rows = rows_.size();
    stays_.assign(kept_.rows, false);
    moves_.clear();
    for (size_t row = 0; row < rows; ++row) {
        Placed& placed = rows_[row];
        if (!is_known(placed)) placed.keeps = Placed::kNew;
        const bool keeps = placed.keeps != Placed::kNew;
        if (keeps) stays_[placed.keeps] = true;
        placed.moved = !keeps;
        placed.total = keeps ? placed.kept : 0;
        const bool next = !moves_.empty() && (keeps ? moves_.back().from != Placed::kNew && moves_.back().from + moves_.back().rows == placed.keeps : moves_.back().from == Placed::kNew);
        if (next) ++moves_.back().rows;
        else moves_.push_back({placed.keeps, 1});
    }
    const bool any = std::any_of(moves_.begin(), moves_.end(), [](const Move& each) { return each.from != Placed::kNew; });
    if (!any) kept_ = {0, {{static_cast<int>(sms), limits_}}, {}};
    has_.resize(kept_.zones.size() * rows);
    zones_.clear();
    open_ = 0;
    uint8_t* line = has_.data();
    for (size_t zone = 0; zone < kept_.zones.size(); ++zone) {
        const Zone& before = kept_.zones[zone];
        gather(zone, line);
        if (zone > 0 && std::equal(line, line + rows, line - rows)) {
            zones_.back().sms += before.sms;
            continue;
        }
        zones_.push_back({before.sms, before.free});
        zones_.back().used = std::any_of(line, line + rows, [](uint8_t ctas) { return ctas > 0; });
        if (resized_ || lost_any(zone)) take_kept(zones_.back(), line);
        zones_.back().full = !holds(zones_.back().free, smallest_, 1);
        open_ += !zones_.back().full;
        line += rows;
    }
    has_.resize(zones_.size() * rows);
}

// What everybody keeps of it.
void Placement::gather(size_t zone, uint8_t* line) const {
    const uint8_t* const kept = kept_.has.data() + zone * kept_.rows;
    for (const Move& each : moves_) {
        if (each.from == Placed::kNew) std::fill_n(line, each.rows, uint8_t{0});
        else std::copy_n(kept + each.from, each.rows, line);
        line += each.rows;
    }
}

bool Placement::lost_any(size_t zone) const {
    const uint8_t* const kept = kept_.has.data() + zone * kept_.rows;
    for (size_t row = 0; row < kept_.rows; ++row) {
        if (!stays_[row] && kept[row]) return true;
    }
    return false;
}

// Of those who do not fit any more, having become others, as much as fits.
void Placement::take_kept(Zone& zone, uint8_t* line) {
    zone.free = limits_;
    for (size_t row = 0; row < rows_.size(); ++row) {
        if (line[row] == 0) continue;
        Placed& placed = rows_[row];
        const int ctas = fitting(zone.free, placed.each, line[row]);
        placed.moved |= ctas < line[row];
        placed.total -= (line[row] - ctas) * zone.sms;
        take(zone.free, placed.each, ctas);
        line[row] = static_cast<uint8_t>(ctas);
    }
}

// For the next time; what is put from now on is room that nobody wanted.
void Placement::keep() {
    kept_.rows = rows_.size();
    kept_.zones = zones_;
    kept_.has = has_;
    for (size_t row = 0; row < rows_.size(); ++row) {
        Placed& placed = rows_[row];
        placed.keeps = row;
        placed.kept = placed.total;
        placed.placed = true;
        placed.moved |= std::exchange(placed.grown, false);
    }
}

void Placement::split(size_t zone, int first) {
    if (first >= zones_[zone].sms) return;
    Zone rest = zones_[zone];
    rest.sms -= first;
    zones_[zone].sms = first;
    zones_.insert(zones_.begin() + static_cast<ptrdiff_t>(zone) + 1, rest);
    open_ += !rest.full;
    has_.resize(zones_.size() * rows_.size());
    const auto rows = static_cast<ptrdiff_t>(rows_.size());
    std::move_backward(has_.begin() + static_cast<ptrdiff_t>(zone) * rows, has_.end() - rows, has_.end());
}

// On each SM of it.
void Placement::put(size_t row, size_t zone, int ctas) {
    if (ctas <= 0) return;
    Zone& at = zones_[zone];
    take(at.free, rows_[row].each, ctas);
    at.used = true;
    if (!at.full && !holds(at.free, smallest_, 1)) {
        at.full = true;
        --open_;
    }
    rows_[row].total += ctas * at.sms;
    rows_[row].moved = true;
    has(zone, row) = static_cast<uint8_t>(has(zone, row) + ctas);
}

// Without a branch for each zone: where runs end cannot be foreseen.
void Placement::note_runs(size_t row) {
    Placed& placed = rows_[row];
    runs_.resize(zones_.size());
    const uint8_t* cell = &has_[row];
    uint32_t* last = runs_.data();
    uint32_t run_ctas = *cell, run_sms = 0, sms = 0;
    for (const Zone& zone : zones_) {
        const bool goes_on = *cell == run_ctas;
        run_ctas = *cell;
        last += !goes_on;
        run_sms = (goes_on ? run_sms : 0u) + static_cast<uint32_t>(zone.sms);
        *last = Placed::run_of(run_ctas, run_sms);
        sms += run_ctas ? static_cast<uint32_t>(zone.sms) : 0u;
        cell += rows_.size();
    }
    placed.sms = static_cast<int>(sms);
    const auto count = static_cast<size_t>(last + 1 - runs_.data());
    if (placed.runs.size() == count && std::equal(placed.runs.begin(), placed.runs.end(), runs_.begin())) return;
    placed.runs.assign(runs_.data(), last + 1);
    placed.said = false;
}

const Quota& Placement::table(const Placed& row) {
    table_.clear();
    for (const uint32_t run : row.runs) table_.insert(table_.end(), Placed::sms_of(run), static_cast<uint8_t>(Placed::ctas_of(run)));
    return table_;
}

// ---- The rules

void Placement::place_known(size_t row) {
    const Placed& placed = rows_[row];
    int want = std::max(1, placed.profile->footprint->sms * placed.profile->footprint->ctas_per_sm) - placed.total;
    for (const bool used : {true, false}) {
        for (size_t zone = 0; zone < zones_.size() && want > 0 && open_ > 0; ++zone) {
            if (zones_[zone].used != used || zones_[zone].full) continue;
            const int room = fitting(zones_[zone].free, placed.each, placed.most - has(zone, row));
            if (room <= 0) continue;
            const int free = used ? zones_[zone].sms : static_cast<int>(sms_) - reserved_ - opened_;
            if (free <= 0) break;
            const int full = std::min({zones_[zone].sms, want / room, free});   // SMs that are filled
            if (full > 0) {
                split(zone, full);
                put(row, zone, room);
                want -= full * room;
                if (!used) opened_ += full;
                continue;   // what has been split off comes next
            }
            const bool rest = want < placed.most && placed.total > 0;
            if (!used && rest) continue;
            split(zone, 1);
            put(row, zone, want);
            if (!used) ++opened_;
            want = 0;
        }
    }
}

// An equal part of the SMs.
void Placement::place_part(size_t row) {
    const int parts = static_cast<int>(rows_.size());
    int left = (static_cast<int>(sms_) + parts - 1) / parts;
    for (size_t zone = 0; zone < zones_.size() && left > 0; ++zone) {
        split(zone, left);
        left -= zones_[zone].sms;
        put(row, zone, fitting(zones_[zone].free, rows_[row].each, rows_[row].most));
    }
}

// Those of which nothing is known have the SMs that nobody else uses, all of them together, or what is left on the others.
void Placement::share_rest(uint64_t first) {
    if (std::all_of(rows_.begin(), rows_.end(), is_known)) return;
    const bool whole = std::any_of(zones_.begin(), zones_.end(), [](const Zone& zone) { return !zone.used; });
    const std::vector<Zone> before = zones_;
    for (size_t row = 0; row < rows_.size(); ++row) {
        Placed& placed = rows_[row];
        if (is_known(placed) || placed.id == first) continue;
        for (size_t zone = 0; zone < zones_.size(); ++zone) {
            if (whole && before[zone].used) continue;
            const int ctas = fitting(before[zone].free, placed.each, placed.most);
            if (!whole && holds(zones_[zone].free, placed.each, ctas)) {
                put(row, zone, ctas);   // so that nobody grows into it
            } else {   // how they share it is the hardware's affair
                has(zone, row) = static_cast<uint8_t>(ctas);
                placed.total += ctas * zones_[zone].sms;
            }
        }
    }
}

// Whoever has the longest way to go takes first.
void Placement::grow(const Device& device) {
    const auto has_room = [](const Zone& zone) { return zone.used && !zone.full; };
    if (std::none_of(zones_.begin(), zones_.end(), has_room)) return;
    order_.clear();
    for (size_t row = 0; row < rows_.size(); ++row) {
        if (rows_[row].kernel && is_known(rows_[row])) order_.emplace_back(-remaining_ns(*rows_[row].kernel, device, rows_[row].most), row);
    }
    std::sort(order_.begin(), order_.end());   // by arrival among equals
    for (size_t zone = 0; zone < zones_.size(); ++zone) {
        if (!has_room(zones_[zone])) continue;
        for (const auto& [left_ns, row] : order_) {
            const int more = rows_[row].most - has(zone, row);
            if (const int ctas = fitting(zones_[zone].free, rows_[row].each, more)) {
                put(row, zone, ctas);
                rows_[row].grown = true;
            }
            if (zones_[zone].full) break;
        }
    }
}

}  // namespace smt::runtime::schedule
