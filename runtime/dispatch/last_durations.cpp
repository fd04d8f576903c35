#include "runtime/dispatch/last_durations.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::dispatch {

namespace {

using profiler::models::TimedLaunch;

constexpr size_t kRowsPerFit = 8;  // a fit takes some us: once for an eighth of the rows that are there

bool alike(const LastDurations::Launch& one, const LastDurations::Launch& two) {
    return one.blocks == two.blocks && one.block_threads == two.block_threads &&
           one.shared_bytes == two.shared_bytes;
}

}  // namespace

void LastDurations::learn(uint64_t key, const Launch& launch, double took_ns) {
    if (key == 0 || took_ns <= 0) return;
    const std::lock_guard lock(mutex_);
    if (!known_) known_ = std::make_unique<Known>();
    Known& known = *known_;
    if (known.young.size() >= kMost && !known.young.contains(key)) known.old = std::exchange(known.young, {});
    known.young[key] = took_ns;
    const Row row{key, {launch, took_ns}};
    const auto same = std::ranges::find(known.rows, key, &Row::key);
    if (same != known.rows.end()) {
        *same = row;
    } else if (known.rows.size() < kRows) {
        known.rows.push_back(row);
    } else {
        known.rows[known.next++ % kRows] = row;
    }
    ++known.fresh;
}

double LastDurations::last(uint64_t key) const {
    const std::lock_guard lock(mutex_);
    if (!known_ || key == 0) return 0;
    for (const Generation* each : {&known_->young, &known_->old}) {
        if (const auto found = each->find(key); found != each->end()) return found->second;
    }
    return 0;
}

void LastDurations::fit() const {
    Known& known = *known_;
    if (known.fresh == 0 || (known.model.block_ns > 0 && known.fresh < known.rows.size() / kRowsPerFit))
        return;
    std::vector<TimedLaunch> rows;
    for (const Row& each : known.rows) rows.push_back(each.timed);
    known.model = profiler::models::fit(rows);
    known.varies = std::ranges::any_of(
        rows, [&](const TimedLaunch& each) { return !alike(each.launch, rows.front().launch); });
    known.fresh = 0;
}

std::optional<double> LastDurations::predict(uint64_t key, const Launch& launch) const {
    if (const double known = last(key); known > 0) return known;
    const std::lock_guard lock(mutex_);
    if (!known_) return std::nullopt;
    fit();
    const bool like =
        std::ranges::any_of(known_->rows, [&](const Row& each) { return alike(each.timed.launch, launch); });
    if (!known_->varies && !like) return std::nullopt;
    const double predicted = known_->model.predict(launch);
    return predicted > 0 ? std::optional(predicted) : std::nullopt;
}

void LastDurations::forget() {
    const std::lock_guard lock(mutex_);
    known_ = nullptr;
}

}  // namespace smt::runtime::dispatch
