// Counters of one launch at a time, by CUPTI's range profiler: a session with one automatic range around the
// launch, which CUPTI replays as often as the metrics need passes.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/collect/counters.h"
#include "profiler/collect/cupti/library.h"

namespace smt::profiler::collect {

class RangeCounters final : public LaunchCounters {
public:
    RangeCounters(const Cupti& cupti, CUcontext context, CUdevice device)
        : cupti_(cupti), context_(context), device_(device) {}
    ~RangeCounters() override;
    RangeCounters(const RangeCounters&) = delete;
    RangeCounters& operator=(const RangeCounters&) = delete;

    bool open();  // false: problem() says why
    size_t passes() const { return passes_; }

    bool before() override;
    std::optional<Sample> after() override;
    const std::string& problem() const override { return problem_; }
    bool final() const override { return final_; }

private:
    bool prepare_host();    // which counters, in which passes
    bool prepare_device();  // room for what they count
    bool clear_counts();
    bool good(const char* call, CUptiResult result);  // else problem_ says it

    const Cupti& cupti_;
    const CUcontext context_;
    const CUdevice device_;
    CUpti_Profiler_Host_Object* host_ = nullptr;
    CUpti_RangeProfiler_Object* ranges_ = nullptr;
    std::vector<uint8_t> config_;
    std::vector<uint8_t> counts_;
    size_t passes_ = 0;
    std::string problem_;
    bool final_ = false;
};

}  // namespace smt::profiler::collect
