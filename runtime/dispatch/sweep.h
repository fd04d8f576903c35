// Measures a stream's managed launches with every number of CTAs and multiprocessors of the plan (profiles/plan.h): a launch runs
// in slices, each with quotas of its own, timed by its workers. What was measured often enough, by this server or by any
// before it, is left out; what is left of a launch passes_through.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "profiler/store/profile.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/dispatch/experiment.h"

namespace smt::runtime::dispatch {

class Sweep final : public Experiment {
public:
    // `places`: the multiprocessors that the stream may use.
    Sweep(int multiprocessors, std::vector<uint32_t> places) : multiprocessors_(multiprocessors), places_(std::move(places)) {}

    void step(ManagedStream& stream, const schedule::Kernel& kernel) override;
    std::string summary() const override;

private:
    bool measure(ManagedStream& stream, const ManagedStream::Front& front, const profiler::Placement& placement);
    QuotaTable quotas(const profiler::Placement& placement) const;

    const int multiprocessors_;
    const std::vector<uint32_t> places_;
    uint64_t slices_ = 0;
    // Slices begun: one that gives no sample is not tried for ever.
    std::map<std::pair<const profiles::KnownKernel*, profiler::Placement>, int> tries_;
};

}  // namespace smt::runtime::dispatch
