// Every managed launch of a stream keeps to half of the CTAs that fit on a multiprocessor, on all of them: so two programs' kernels
// always find room beside each other, whichever they are, and what that brings can be measured apart from any policy (Kernelet's
// co-scheduling profit, profiler/models/co_schedule.h). A kernel of which one CTA fits has that one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dispatch/managed_stream.h"
#include "runtime/dispatch/experiment.h"

namespace smt::runtime::dispatch {

class HalfCtas final : public Experiment {
public:
    // `places`: the multiprocessors that the stream may use.
    HalfCtas(int multiprocessors, std::vector<uint32_t> places) : multiprocessors_(multiprocessors), places_(std::move(places)) {}

    static int half(int ctas) { return std::max(1, ctas / 2); }

    void step(ManagedStream& stream, const schedule::Kernel& kernel) override;
    std::string summary() const override;

private:
    const int multiprocessors_;
    const std::vector<uint32_t> places_;
    uint64_t launches_ = 0;
};

}  // namespace smt::runtime::dispatch
