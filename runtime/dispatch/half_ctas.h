// Experiment: every managed launch of a stream is limited to half of the CTAs that fit on an SM, on all SMs.
// Kernels of any two programs then find room beside each other, and their co-scheduling profit (Kernelet;
// profiler/models/co_schedule.h) can be measured apart from any policy. A kernel of which one CTA fits keeps
// that one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dispatch/experiment.h"
#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

class HalfCtas final : public Experiment {
public:
    // `places`: the SMs that the stream may use.
    HalfCtas(int multiprocessors, std::vector<uint32_t> places)
        : multiprocessors_(multiprocessors), places_(std::move(places)) {}

    static int half(int ctas) { return std::max(1, ctas / 2); }

    void step(ManagedStream& stream, const schedule::Kernel& kernel) override;
    std::string summary() const override;

private:
    const int multiprocessors_;
    const std::vector<uint32_t> places_;
    uint64_t launches_ = 0;
};

}  // namespace smt::runtime::dispatch
