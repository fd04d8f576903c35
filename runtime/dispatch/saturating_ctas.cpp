#include "runtime/dispatch/saturating_ctas.h"

#include <algorithm>
#include <map>
#include <utility>

namespace smt::runtime::dispatch {

void SaturatingCtas::begin(uint32_t fits) {
    fits_ = enough_ = fits;
    too_few_ = 0;
    best_ = 0;
    blocks_ = time_ns_ = last_ = 0;
    short_ = crowded_ = 0;
}

void SaturatingCtas::forget() {
    std::lock_guard lock(mutex_);
    begin(0);
}

SaturatingCtas::Try SaturatingCtas::next(uint32_t fits) {
    std::lock_guard lock(mutex_);
    if (fits != fits_) begin(fits);
    if (known()) return {enough_, false};
    return {tried(), true};
}

uint32_t SaturatingCtas::found(uint32_t fits) {
    std::lock_guard lock(mutex_);
    return fits == fits_ && known() ? enough_ : 0;
}

bool SaturatingCtas::learn(uint32_t fits, uint32_t ctas, uint32_t multiprocessors, const Done& done) {
    std::lock_guard lock(mutex_);
    if (fits != fits_ || known() || ctas != tried()) return false;  // of before something was decided
    crowded_ = done.late > kMostLate ? crowded_ + 1 : 0;
    if (crowded_ >= kMostCrowded) {
        if (best_ == 0) best_ = 1;  // of no trial
        too_few_ = enough_ - 1;
        return false;
    }
    if (crowded_ > 0) return false;
    const bool few = done.stopped && done.blocks < kBlocksStopped * done.workers;
    short_ = few ? short_ + 1 : 0;
    if (few && short_ <= kMostShort) return false;
    blocks_ += done.blocks;
    time_ns_ += done.time_ns;
    last_ += done.stopped ? done.workers : 0;
    if (blocks_ < kBlocksEach * ctas * multiprocessors) return false;
    const auto blocks = static_cast<double>(std::exchange(blocks_, 0));
    const double last = static_cast<double>(std::exchange(last_, 0)) / blocks;
    const double rate = blocks / static_cast<double>(std::max<uint64_t>(1, std::exchange(time_ns_, 0)));
    if (best_ == 0) {
        best_ = rate;
        return known();
    }
    if (rate >= (kAsMuch - std::min(last / 2, kMostForLast)) * best_)
        enough_ = ctas;
    else
        too_few_ = ctas;
    best_ = std::max(best_, rate);
    return known();
}

double late_part(const std::vector<smt::Mapping>& workers, uint64_t count) {
    uint64_t began = ~0ull, ended = 0;
    for (const smt::Mapping& each : workers) {
        began = std::min<uint64_t>(began, each.began);
        ended = std::max<uint64_t>(ended, each.ended);
    }
    if (began >= ended || count == 0) return 0;
    const auto took = static_cast<double>(ended - began);
    const uint64_t missing = count - std::min<uint64_t>(count, workers.size());
    double late = static_cast<double>(missing) * took;
    for (const smt::Mapping& each : workers) late += static_cast<double>(each.began - began);
    return late / (static_cast<double>(count) * took);
}

uint64_t time_of_multiprocessors(const std::vector<smt::Mapping>& workers, uint32_t multiprocessors) {
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> spans;
    std::pair<uint64_t, uint64_t> whole{~0ull, 0};
    const auto widen = [](std::pair<uint64_t, uint64_t>& span, const smt::Mapping& by) {
        span = {std::min<uint64_t>(span.first, by.began), std::max<uint64_t>(span.second, by.ended)};
    };
    for (const smt::Mapping& each : workers) {
        widen(spans.try_emplace(each.sm, each.began, each.ended).first->second, each);
        widen(whole, each);
    }
    uint64_t sum = 0;
    for (const auto& [sm, span] : spans) sum += span.second - span.first;
    if (spans.empty() || spans.size() >= multiprocessors) return sum;
    return sum + (multiprocessors - spans.size()) * (whole.second - whole.first);
}

}  // namespace smt::runtime::dispatch
