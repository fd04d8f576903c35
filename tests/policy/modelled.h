// Kernels that the Markov model can say something of, and what it says, for the tests of slice.
#pragma once

#include "tests/policy/snapshots.h"

namespace smt::tests {

inline const models::Multiprocessor kModel{4, {.latency = 600, .requests_per_cycle = 0.56}};
inline const Resources kEighth = nth_of(kSm, 8);  // 8 warps

inline Device modelled(int sms) {
    Device made = device(sms);
    made.model = kModel;
    return made;
}

// R_m decides what it is: PUR and MUR as a kernel would have them.
inline std::shared_ptr<const Profile> mix(double memory_ratio, double pur, double mur,
                                          double instructions = 10000) {
    Profile made;
    made.mix = Mix{{pur, mur}, memory_ratio, 0, instructions};
    made.slice_overhead = 10us;
    return std::make_shared<Profile>(made);
}

inline const auto kComputes = mix(0.002, 0.95, 0.01), kLoads = mix(0.2, 0.15, 0.9),
                  kBetween = mix(0.015, 0.5, 0.5);

inline Kernel profiled(uint64_t id, std::shared_ptr<const Profile> profile, uint64_t blocks = 100000) {
    Kernel made = kernel(id, blocks, kEighth);
    made.profile = std::move(profile);
    made.predicted = 10us * blocks / 100;  // 0.1 us a block
    return made;
}

inline models::KernelModel model_of(const Profile& profile) {
    return {8, 8, profile.mix->memory_ratio, 0, profile.mix->instructions_per_block};
}

inline const std::vector<models::Blocks> kFull{{1, 7}, {2, 6}, {3, 5}, {4, 4},
                                               {5, 3}, {6, 2}, {7, 1}};  // of eighths

inline models::CoSchedule expected(const Profile& first, const Profile& second) {
    return *models::balanced(kModel, model_of(first), model_of(second), kFull);
}

// The only ones that run.
inline std::vector<uint64_t> chosen(Policy& policy, const Device& device, std::vector<Kernel> kernels,
                                    TimePoint now = kBegin) {
    for (Kernel& each : kernels) each = waiting(each, each.since == TimePoint{} ? kBegin : each.since);
    std::vector<uint64_t> runs;
    for (const auto& [id, text] : said(policy.decide({device, kernels}, now))) runs.push_back(id);
    return runs;
}
using Ids = std::vector<uint64_t>;

}  // namespace smt::tests
