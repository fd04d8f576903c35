// How much others are behind, of tenants with virtual times and weights: n log n steps for all of them, where
// a loop over the others for each takes n * n.
//
//     times 10, 30, 60 and weights 1, 2, 1:   60 is ahead by (60 - 10) * 1 + (60 - 30) * 2 = 110
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

namespace smt::runtime::schedule {

class Behind {
public:
    void clear() { all_.clear(); }
    void add(double time, double weight) { all_.push_back({time, weight}); }
    // After all are added, before the questions below.
    void sum() {
        std::ranges::sort(all_, {}, &Tenant::time);
        all_.push_back({std::numeric_limits<double>::infinity(), 0});
        double weights = 0, times = 0;
        for (Tenant& each : all_) {
            each.weights = weights;
            each.times = times;
            weights += each.weight;
            if (each.weight > 0) times += since_first(each.time) * each.weight;
        }
    }

    double weights() const { return all_.back().weights; }
    // By what the times of those that are behind this one are smaller, each times its weight.
    double of(double time) const {
        const auto end = std::ranges::lower_bound(all_, time, {}, &Tenant::time);
        return end->weights > 0 ? since_first(time) * end->weights - end->times : 0;
    }

private:
    struct Tenant {
        double time, weight;
        double weights = 0, times = 0;  // of those before it: summed, times by weight and from the first on
    };
    // Small numbers keep their digits.
    double since_first(double time) const { return time - all_.front().time; }

    std::vector<Tenant> all_;  // by time, and one behind all of them
};

}  // namespace smt::runtime::schedule
