#include "profiler/models/duration.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <vector>

namespace smt::profiler::models {

namespace {

using Features = Eigen::Matrix<double, kDurationFeatures, 1>;

// A feature whose deviation is less than this part of its mean is taken as constant: rounding, not variation.
constexpr double kVaries = 1e-9;

Features features_of(const Launch& launch) {
    return {launch.blocks, launch.block_threads, launch.input_bytes, launch.shared_bytes};
}

}  // namespace

double Duration::predict(const Launch& launch) const {
    const Eigen::Map<const Features> weights(ns_per.data());
    const double line = intercept_ns + weights.dot(features_of(launch));
    return line > 0 ? line : block_ns * launch.blocks;
}

Duration fit(std::span<const TimedLaunch> rows, double penalty) {
    Duration model;
    if (rows.empty()) return model;
    const auto count = static_cast<Eigen::Index>(rows.size());
    Eigen::MatrixXd scaled(count, kDurationFeatures);
    Eigen::VectorXd times(count);
    for (Eigen::Index row = 0; row < count; ++row) {
        scaled.row(row) = features_of(rows[row].launch);
        times[row] = rows[row].nanoseconds;
    }
    const double blocks = scaled.col(0).sum(), mean_time = times.mean();
    model.block_ns = blocks > 0 ? times.sum() / blocks : 0;

    const Features mean = scaled.colwise().mean();
    scaled.rowwise() -= mean.transpose();
    Features deviation = (scaled.colwise().squaredNorm() / count).cwiseSqrt();
    const auto varies = (deviation.array() > kVaries * mean.array().abs()).eval();
    if (!varies.any()) return model;
    for (size_t i = 0; i < kDurationFeatures; ++i) {
        if (!varies[i]) scaled.col(i).setZero();  // so its weight is 0
        if (!varies[i]) deviation[i] = 1;
        scaled.col(i) /= deviation[i];
    }
    // With the penalty on its diagonal the matrix is positive definite, whatever the rows.
    Eigen::Matrix<double, kDurationFeatures, kDurationFeatures> normal = scaled.transpose() * scaled / count;
    normal.diagonal().array() += penalty;
    const Features correlation = scaled.transpose() * (times.array() - mean_time).matrix() / count;
    Eigen::Map<Features> weights(model.ns_per.data());
    weights = normal.ldlt().solve(correlation).cwiseQuotient(deviation);
    model.intercept_ns = mean_time - weights.dot(mean);
    return model;
}

std::optional<double> held_out_error(std::span<const TimedLaunch> rows, double penalty) {
    if (rows.size() < 2) return std::nullopt;
    double sum = 0;
    std::vector<TimedLaunch> others(rows.begin() + 1, rows.end());  // than the first; then than each
    for (size_t held_out = 0; held_out < rows.size(); ++held_out) {
        if (held_out > 0) others[held_out - 1] = rows[held_out - 1];
        const double predicted = fit(others, penalty).predict(rows[held_out].launch);
        sum += std::abs(predicted - rows[held_out].nanoseconds) / rows[held_out].nanoseconds;
    }
    return sum / static_cast<double>(rows.size());
}

}  // namespace smt::profiler::models
