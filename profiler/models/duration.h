// Prediction of a launch's duration from four numbers that are known before it starts: the duration model of
// FLEP (Wu and others), section 4.2. It is a linear regression for each kernel with an L2 penalty. Pure
// functions.
//
//     time = intercept + sum over the features of (ns per unit of the feature * the feature)
//
// The features are grid size, block size, input size and shared memory. With z the features, scaled to mean 0
// and variance 1 over the rows, and y the times minus their mean, the weights minimise
//
//     sum over the rows of (y - z w)^2 / rows + penalty * |w|^2
//
// The paper names neither penalty nor scaling. Scaled features allow one penalty for counts and bytes. 0.001
// takes a thousandth off the weight of a single feature, and suffices to share the weight between two
// features that say the same (often grid and input size). The result is in plain units, so that it is
// readable.
//
// With few data:
// - No row: predicts 0.
// - One row, or several in which no feature varies: the mean time of a block, times blocks.
// - A feature that does not vary explains nothing: its weight is 0.
// - Fewer rows than features: the penalty selects the flattest of the lines that fit about equally.
// - A launch so small that the line is at or below 0: as with one row.
//
//     const Duration model = fit(rows);
//     model.predict({.blocks = 4096, .block_threads = 256, .input_bytes = 1 << 20})     // ns
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace smt::profiler::models {

struct Launch {
    double blocks = 0;  // of the grid
    double block_threads = 0;
    double input_bytes = 0;
    double shared_bytes = 0;  // of a block
};

struct TimedLaunch {
    Launch launch;
    double nanoseconds = 0;
};

inline constexpr double kDurationPenalty = 1e-3;
inline constexpr size_t kDurationFeatures = 4;

struct Duration {
    double predict(const Launch& launch) const;  // ns

    double block_ns = 0;  // mean time of a block: the launch's time over its blocks
    double intercept_ns = 0;
    std::array<double, kDurationFeatures> ns_per{};  // block, thread, input byte, shared byte
};

// The penalty is above 0.
Duration fit(std::span<const TimedLaunch> rows, double penalty = kDurationPenalty);

// The prediction error relative to the measured time: the mean over the rows, each predicted from the others
// (the paper's 6.9 % are for inputs that were not fitted, too). Nothing: fewer than two rows. Makes as many
// fits as rows.
std::optional<double> held_out_error(std::span<const TimedLaunch> rows, double penalty = kDurationPenalty);

}  // namespace smt::profiler::models
