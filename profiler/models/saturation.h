// The footprint: the fewest CTAs with which a kernel is about as fast as with the whole device. smCompactor
// (Chen and others), sections 3.3 and 3.4, dispatches a kernel to it. A pure function.
//
// Throughput (the paper takes that of global loads and stores; any measure proportional to the work done is
// valid) grows in proportion to the multiprocessors and to the CTAs on each, until it saturates, and then
// stays constant. So for each number of CTAs, measurements on one multiprocessor and on all of them suffice:
//
//     throughput(s, c) = min(s * one(c), all(c))
//
// The paper says so in words; the formula is ours. With the best throughput B of all points and an allowed
// loss, each c that reaches (1 - loss) * B on all multiprocessors needs s = ceil((1 - loss) * B / one(c)) of
// them. The smallest s * c is chosen; of equals the one with fewer multiprocessors, which leaves more of them
// free. Numbers of CTAs that were not measured are not considered.
//
//     footprint({{1, 10, 600}, {2, 20, 1000}, {4, 25, 1000}}, 132, 0.05)  ->  48 x 2 of 132 x 4
#pragma once

#include <optional>
#include <span>

namespace smt::profiler::models {

struct SaturationPoint {
    int ctas_per_sm = 0;
    double one_sm = 0;   // throughput with these CTAs on one multiprocessor
    double all_sms = 0;  // and on each multiprocessor
};

struct Footprint {
    int sms = 0;
    int ctas_per_sm = 0;
    double throughput = 0;  // expected
};

// `loss` is from 0 to 1. Nothing: no point has a throughput, or there is no multiprocessor.
std::optional<Footprint> footprint(std::span<const SaturationPoint> points, int sms, double loss);

}  // namespace smt::profiler::models
