#include "profiler/collect/cupti/range.h"

#include <utility>

namespace smt::profiler::collect {

namespace {

// CUPTI's structs begin with their size, as the caller knows it.
template <class Parameters>
Parameters sized(size_t bytes) {
    Parameters parameters{};
    parameters.structSize = bytes;
    return parameters;
}
#define SIZED(type) sized<type>(type##_STRUCT_SIZE)

const char** names() { return const_cast<const char**>(kMetricNames.data()); }

}  // namespace

RangeCounters::~RangeCounters() {
    if (ranges_) {
        auto disable = SIZED(CUpti_RangeProfiler_Disable_Params);
        disable.pRangeProfilerObject = ranges_;
        cupti_.cuptiRangeProfilerDisable(&disable);
    }
    if (host_) {
        auto end = SIZED(CUpti_Profiler_Host_Deinitialize_Params);
        end.pHostObject = host_;
        cupti_.cuptiProfilerHostDeinitialize(&end);
    }
}

bool RangeCounters::good(const char* call, CUptiResult result) {
    if (result == CUPTI_SUCCESS) return true;
    problem_ = describe(cupti_, call, result);
    final_ = final_ || is_final(result);
    return false;
}

bool RangeCounters::open() {
    const bool opened = prepare_host() && prepare_device();
    final_ = final_ || !opened;
    return opened;
}

bool RangeCounters::prepare_host() {
    auto initialize = SIZED(CUpti_Profiler_Initialize_Params);
    if (!good("cuptiProfilerInitialize", cupti_.cuptiProfilerInitialize(&initialize))) return false;
    auto chip = SIZED(CUpti_Device_GetChipName_Params);
    chip.deviceIndex = static_cast<size_t>(device_);
    if (!good("cuptiDeviceGetChipName", cupti_.cuptiDeviceGetChipName(&chip))) return false;

    auto available = SIZED(CUpti_Profiler_GetCounterAvailability_Params);
    available.ctx = context_;
    if (!good("cuptiProfilerGetCounterAvailability", cupti_.cuptiProfilerGetCounterAvailability(&available)))
        return false;
    std::vector<uint8_t> availability(available.counterAvailabilityImageSize);
    available.pCounterAvailabilityImage = availability.data();
    if (!good("cuptiProfilerGetCounterAvailability", cupti_.cuptiProfilerGetCounterAvailability(&available)))
        return false;

    auto host = SIZED(CUpti_Profiler_Host_Initialize_Params);
    host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    host.pChipName = chip.pChipName;
    host.pCounterAvailabilityImage = availability.data();
    if (!good("cuptiProfilerHostInitialize", cupti_.cuptiProfilerHostInitialize(&host))) return false;
    host_ = host.pHostObject;

    // All at once: each call begins a new pass.
    auto metrics = SIZED(CUpti_Profiler_Host_ConfigAddMetrics_Params);
    metrics.pHostObject = host_;
    metrics.ppMetricNames = names();
    metrics.numMetrics = kMetrics;
    if (!good("cuptiProfilerHostConfigAddMetrics", cupti_.cuptiProfilerHostConfigAddMetrics(&metrics)))
        return false;
    auto size = SIZED(CUpti_Profiler_Host_GetConfigImageSize_Params);
    size.pHostObject = host_;
    if (!good("cuptiProfilerHostGetConfigImageSize", cupti_.cuptiProfilerHostGetConfigImageSize(&size)))
        return false;
    config_.resize(size.configImageSize);
    auto image = SIZED(CUpti_Profiler_Host_GetConfigImage_Params);
    image.pHostObject = host_;
    image.configImageSize = config_.size();
    image.pConfigImage = config_.data();
    if (!good("cuptiProfilerHostGetConfigImage", cupti_.cuptiProfilerHostGetConfigImage(&image)))
        return false;
    auto passes = SIZED(CUpti_Profiler_Host_GetNumOfPasses_Params);
    passes.configImageSize = config_.size();
    passes.pConfigImage = config_.data();
    if (cupti_.cuptiProfilerHostGetNumOfPasses(&passes) == CUPTI_SUCCESS) passes_ = passes.numOfPasses;
    return true;
}

bool RangeCounters::prepare_device() {
    auto enable = SIZED(CUpti_RangeProfiler_Enable_Params);
    enable.ctx = context_;
    if (!good("cuptiRangeProfilerEnable", cupti_.cuptiRangeProfilerEnable(&enable))) return false;
    ranges_ = enable.pRangeProfilerObject;
    auto size = SIZED(CUpti_RangeProfiler_GetCounterDataSize_Params);
    size.pRangeProfilerObject = ranges_;
    size.pMetricNames = names();
    size.numMetrics = kMetrics;
    size.maxNumOfRanges = 1;
    size.maxNumRangeTreeNodes = 1;
    if (!good("cuptiRangeProfilerGetCounterDataSize", cupti_.cuptiRangeProfilerGetCounterDataSize(&size)))
        return false;
    counts_.resize(size.counterDataSize);
    return clear_counts();
}

bool RangeCounters::clear_counts() {
    auto clear = SIZED(CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    clear.pRangeProfilerObject = ranges_;
    clear.counterDataSize = counts_.size();
    clear.pCounterData = counts_.data();
    return good("cuptiRangeProfilerCounterDataImageInitialize",
                cupti_.cuptiRangeProfilerCounterDataImageInitialize(&clear));
}

bool RangeCounters::before() {
    if (final_ || !clear_counts()) return false;
    auto config = SIZED(CUpti_RangeProfiler_SetConfig_Params);
    config.pRangeProfilerObject = ranges_;
    config.configSize = config_.size();
    config.pConfig = config_.data();
    config.counterDataImageSize = counts_.size();
    config.pCounterDataImage = counts_.data();
    config.range = CUPTI_AutoRange;
    config.replayMode = CUPTI_KernelReplay;
    config.maxRangesPerPass = 1;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    if (!good("cuptiRangeProfilerSetConfig", cupti_.cuptiRangeProfilerSetConfig(&config))) return false;
    auto start = SIZED(CUpti_RangeProfiler_Start_Params);
    start.pRangeProfilerObject = ranges_;
    return good("cuptiRangeProfilerStart", cupti_.cuptiRangeProfilerStart(&start));
}

std::optional<Sample> RangeCounters::after() {
    auto stop = SIZED(CUpti_RangeProfiler_Stop_Params);
    stop.pRangeProfilerObject = ranges_;
    if (!good("cuptiRangeProfilerStop", cupti_.cuptiRangeProfilerStop(&stop))) return std::nullopt;
    auto decode = SIZED(CUpti_RangeProfiler_DecodeData_Params);
    decode.pRangeProfilerObject = ranges_;
    if (!good("cuptiRangeProfilerDecodeData", cupti_.cuptiRangeProfilerDecodeData(&decode)))
        return std::nullopt;
    Sample sample{};
    auto evaluate = SIZED(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
    evaluate.pHostObject = host_;
    evaluate.pCounterDataImage = counts_.data();
    evaluate.counterDataImageSize = counts_.size();
    evaluate.rangeIndex = 0;
    evaluate.ppMetricNames = names();
    evaluate.numMetrics = kMetrics;
    evaluate.pMetricValues = sample.data();
    if (!good("cuptiProfilerHostEvaluateToGpuValues", cupti_.cuptiProfilerHostEvaluateToGpuValues(&evaluate)))
        return std::nullopt;
    return sample;
}

std::unique_ptr<LaunchCounters> open_cupti_counters(CUcontext context, CUdevice device,
                                                    std::string* problem) {
    const Cupti* cupti = open_cupti(problem);
    if (!cupti) return nullptr;
    auto counters = std::make_unique<RangeCounters>(*cupti, context, device);
    if (counters->open()) return counters;
    *problem = counters->problem();
    return nullptr;
}

}  // namespace smt::profiler::collect
