// How long a call takes, for people: the cases tagged [cost] print it and assert nothing about it.
#pragma once

#include <algorithm>
#include <chrono>

namespace smt::tests {

// The least mean of several trials, in microseconds.
template <class Call>
double cost_us(const Call& call) {
    constexpr int kTrials = 20, kCalls = 100;
    double least = 1e300;
    for (int trial = 0; trial < kTrials; ++trial) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < kCalls; ++i) call();
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        least = std::min(least, took.count() / kCalls);
    }
    return least;
}

}  // namespace smt::tests
