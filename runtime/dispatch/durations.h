// Histogram of durations, in buckets a fifth apart. No allocation. The caller serializes.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace smt::runtime::dispatch {

class Durations {
public:
    void add(std::chrono::nanoseconds took) {
        const double ns = std::max(1.0, static_cast<double>(took.count()));
        ++counts_[std::min(counts_.size() - 1, static_cast<size_t>(kSteps * std::log2(ns)))];
        ++count_;
        most_ns_ = std::max(most_ns_, ns);
    }
    uint64_t count() const { return count_; }
    double most_us() const { return most_ns_ / 1e3; }
    // Upper bound of the quantile `part` in us, at most a fifth too large. 0 without samples.
    double quantile_us(double part) const {
        auto left = static_cast<uint64_t>(part * static_cast<double>(count_));
        for (size_t i = 0; i < counts_.size() && count_ > 0; ++i) {
            if (left < counts_[i])
                return std::min(most_ns_, std::exp2(static_cast<double>(i + 1) / kSteps)) / 1e3;
            left -= counts_[i];
        }
        return most_us();
    }

private:
    static constexpr double kSteps = 4;      // buckets for each factor of two
    std::array<uint64_t, 4 * 34> counts_{};  // up to 17 s
    uint64_t count_ = 0;
    double most_ns_ = 0;
};

}  // namespace smt::runtime::dispatch
