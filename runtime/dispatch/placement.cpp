#include "runtime/dispatch/placement.h"

#include <algorithm>
#include <queue>

namespace smt::runtime::dispatch {

void Placement::begin(uint32_t launch, const QuotaTable& quotas) {
    counts_ = true;
    launch_ = launch;
    quotas_ = quotas;
    workers_.clear();
    lost_ = 0;
}

void Placement::add(const std::vector<smt::Mapping>& workers, uint64_t lost) {
    if (!counts_) return;
    for (const smt::Mapping& each : workers) {
        if (each.launch == launch_) workers_.push_back(each);
    }
    lost_ += lost;
}

void Placement::end() {
    if (!counts_) return;
    counts_ = false;
    sums_.tables += 1;
    sums_.lost += lost_;
    std::vector<std::vector<smt::Mapping>> by_multiprocessor(quotas_.size());
    for (const smt::Mapping& each : workers_) {
        sums_.workers += 1;
        sums_.blocks += each.blocks;
        if (each.sm < by_multiprocessor.size())
            by_multiprocessor[each.sm].push_back(each);
        else
            sums_.astray += each.blocks;
    }
    for (size_t sm = 0; sm < by_multiprocessor.size(); ++sm) judge(quotas_[sm], by_multiprocessor[sm]);
}

// A worker has its place from `began` to `ended`. A worker that comes as another goes takes over its place.
void Placement::judge(uint8_t quota, std::vector<smt::Mapping>& workers) {
    if (quota == smt::kNoQuota) return;
    std::ranges::sort(workers,
                      [](const smt::Mapping& a, const smt::Mapping& b) { return a.began < b.began; });
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> ends;
    for (const smt::Mapping& each : workers) {
        while (!ends.empty() && ends.top() <= each.began) ends.pop();
        ends.push(each.ended);
        const uint64_t there = ends.size();
        sums_.fullest = std::max(sums_.fullest, there);
        if (there <= quota) continue;
        sums_.astray += each.blocks;
        sums_.beyond = std::max(sums_.beyond, there - quota);
    }
}

}  // namespace smt::runtime::dispatch
