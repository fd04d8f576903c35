// Experiment: measures a stream's managed launches with every number of CTAs and SMs of the plan
// (profiles/plan.h). A launch runs in slices, each with its own quotas, timed by its workers. What this
// server or an earlier one measured often enough is left out. What is left of a launch passes through.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "profiler/store/profile.h"
#include "runtime/dispatch/experiment.h"
#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

class Sweep final : public Experiment {
public:
    // `places`: the SMs that the stream may use.
    Sweep(int multiprocessors, std::vector<uint32_t> places)
        : multiprocessors_(multiprocessors), places_(std::move(places)) {}

    void step(ManagedStream& stream, const schedule::Kernel& kernel) override;
    std::string summary() const override;

private:
    bool measure(ManagedStream& stream, const ManagedStream::Front& front,
                 const profiler::Placement& placement);
    QuotaTable quotas(const profiler::Placement& placement) const;

    const int multiprocessors_;
    const std::vector<uint32_t> places_;
    uint64_t slices_ = 0;
    // Slices begun. Bounds the attempts at a placement that yields no sample.
    std::map<std::pair<const profiles::KnownKernel*, profiler::Placement>, int> tries_;
};

}  // namespace smt::runtime::dispatch
