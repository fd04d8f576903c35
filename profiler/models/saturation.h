// The fewest CTAs with which a kernel is still about as fast as with the whole device: what smCompactor (Chen
// and others), sections 3.3 and 3.4, has a kernel dispatched to.
//
// Throughput (the paper takes that of global loads and stores; anything proportional to the work done will
// do) grows in proportion to the multiprocessors and to the CTAs on each, until it saturates, and then stays.
// So it is enough to measure, for some numbers of CTAs, one multiprocessor and all of them:
//
//     throughput(s, c) = min(s * one(c), all(c))
//
// The paper says so in words; the formula is ours. With the best throughput B of all points and an allowed
// loss, each c that reaches (1 - loss) * B at all needs s = ceil((1 - loss) * B / one(c)) multiprocessors,
// and the smallest s * c is taken; of equals the one with fewer multiprocessors, which leaves more of them
// whole to others. Numbers of CTAs that were not measured are not considered.
//
//     footprint({{1, 10, 600}, {2, 20, 1000}, {4, 25, 1000}}, 132, 0.05)  ->  48 x 2 of 132 x 4
#pragma once

#include <optional>
#include <span>

namespace smt::profiler::models {

struct SaturationPoint {
    int ctas_per_sm = 0;
    double one_sm = 0;   // throughput with these CTAs on one multiprocessor
    double all_sms = 0;  // and on each of them
};

struct Footprint {
    int sms = 0;
    int ctas_per_sm = 0;
    double throughput = 0;  // expected
};

// `loss` from 0 to 1. Nothing: there is no point with a throughput, or no multiprocessor.
std::optional<Footprint> footprint(std::span<const SaturationPoint> points, int sms, double loss);

}  // namespace smt::profiler::models
