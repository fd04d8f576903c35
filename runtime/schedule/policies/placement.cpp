#include "runtime/schedule/policies/placement.h"

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
    for (Placed& row : rows_) row.kernel = nullptr;
}

const Placed& Placement::note(const Kernel& kernel) {
    auto row =
        std::find_if(rows_.begin(), rows_.end(), [&](const Placed& each) { return each.id == kernel.id; });
    // Another kernel in the same stream comes last; the next launch of the same one stays where it is.
    if (row != rows_.end() && (row->profile != kernel.profile || row->cta != kernel.cta)) {
        rows_.erase(row);
        row = rows_.end();
    }
    if (row == rows_.end()) {
        rows_.push_back({nullptr, kernel.id, kernel.profile, kernel.cta, {}, {}, 0, {}, 1});
        row = std::prev(rows_.end());
        changed_ = true;
    }
    row->kernel = &kernel;
    return *row;
}

bool Placement::end() {
    changed_ |= std::erase_if(rows_, [](const Placed& row) { return !row.kernel; }) > 0;
    return changed_;
}

void Placement::replace(const Device& device, uint64_t first) {
    for (Placed& row : rows_) row.asked.clear();
    place(device, first);
}

void Placement::place(const Device& device, uint64_t first) {
    const auto count = static_cast<size_t>(std::max(1, device.multiprocessors));
    limits_ = limits_of(device);
    sms_.assign(count, {limits_, false});
    size_t unknown = 0;
    for (Placed& row : rows_) {
        // What was room that nobody wanted is free again, and what has no footprint moves.
        const Quota kept = is_known(row) && row.asked.size() == count ? row.asked : Quota(count, 0);
        row.table.assign(count, 0);
        row.total = 0;
        row.each = cta_of(*row.kernel, limits_);
        row.most = per_sm(row, limits_);
        for (size_t sm = 0; sm < count; ++sm) {
            if (kept[sm]) put(row, sm, std::min<int>(kept[sm], fitting(sms_[sm].free, row.each)));
        }
        unknown += !is_known(row);
    }
    for (Placed& row : rows_) {
        if (row.id != first) continue;
        if (is_known(row)) {
            place_known(row);
        } else {
            place_unknown(row, rows_.size());
            --unknown;
        }
    }
    for (Placed& row : rows_) {
        if (row.id != first && is_known(row)) place_known(row);
    }
    for (Placed& row : rows_) {
        if (row.id != first && !is_known(row)) place_unknown(row, unknown--);
    }
    for (Placed& row : rows_) row.asked = row.table;
    grow(device);
}

void Placement::put(Placed& row, size_t sm, int ctas) {
    if (!ctas) return;
    take(sms_[sm].free, row.each, ctas);
    sms_[sm].used = true;
    row.total += ctas;
    row.table[sm] = static_cast<uint8_t>(row.table[sm] + ctas);
}

void Placement::place_known(Placed& row) {
    int want = std::max(1, row.profile->footprint->sms * row.most) - row.total;
    for (const bool used : {true, false}) {
        for (size_t sm = 0; sm < sms_.size() && want > 0; ++sm) {
            if (sms_[sm].used != used) continue;
            const int room = std::min(fitting(sms_[sm].free, row.each), row.most - row.table[sm]);
            const int ctas = std::min(room, want);
            const bool rest = want < row.most && row.total > 0;
            if (ctas <= 0 || (!used && rest)) continue;
            put(row, sm, ctas);
            want -= ctas;
        }
    }
}

void Placement::place_unknown(Placed& row, size_t parts) {
    const auto is_free = [](const Sm& sm) { return !sm.used; };
    const auto free = static_cast<size_t>(std::count_if(sms_.begin(), sms_.end(), is_free));
    size_t left = (free + parts - 1) / parts;
    const bool whole = left > 0;
    for (size_t sm = 0; sm < sms_.size(); ++sm) {
        if (whole && (sms_[sm].used || left == 0)) continue;
        left -= whole;
        put(row, sm, std::min(fitting(sms_[sm].free, row.each), row.most));
    }
}

// Whoever has the longest way to go takes first.
void Placement::grow(const Device& device) {
    std::vector<std::pair<double, Placed*>> order;
    for (Placed& row : rows_) {
        if (is_known(row)) order.emplace_back(remaining_ns(*row.kernel, device, row.most), &row);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [left_ns, row] : order) {
        for (size_t sm = 0; sm < sms_.size(); ++sm) {
            if (!sms_[sm].used || row->table[sm] >= row->most) continue;
            put(*row, sm, std::min(fitting(sms_[sm].free, row->each), row->most - row->table[sm]));
        }
    }
}

}  // namespace smt::runtime::schedule
