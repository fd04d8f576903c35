// One factory for each policy; registry.cpp lists them.
#pragma once

#include "runtime/schedule/policies/knobs.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

std::unique_ptr<Policy> make_fifo();
std::unique_ptr<Policy> make_priority();
std::unique_ptr<Policy> make_priority_whole();
std::unique_ptr<Policy> make_greedy(const GreedyKnobs& knobs = {});
std::unique_ptr<Policy> make_hpf(const HpfKnobs& knobs = {});
std::unique_ptr<Policy> make_fair(const FairKnobs& knobs = {});
std::unique_ptr<Policy> make_share(const ShareKnobs& knobs = {});
std::unique_ptr<Policy> make_slo(const SloKnobs& knobs = {});
std::unique_ptr<Policy> make_slice(const SliceKnobs& knobs = {});
std::unique_ptr<Policy> make_compact(const CompactKnobs& knobs = {});

}  // namespace smt::runtime::schedule
