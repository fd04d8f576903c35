// CUPTI as a table of functions, found and opened at run time.
//
// SMT_CUPTI names the file; else libcupti.so.13 is looked for in $CUDA_HOME, the toolkit that smt was built
// with, /usr/local/cuda*, where the loader looks, and in the folders of pip's nvidia wheels. Another major
// version has other records: it is not taken.
#pragma once

#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <memory>
#include <string>

namespace smt::profiler::collect {

#define SMT_CUPTI_FUNCTIONS(X)              \
    X(cuptiGetVersion)                      \
    X(cuptiGetResultString)                 \
    X(cuptiActivityRegisterCallbacks)       \
    X(cuptiActivityEnable)                  \
    X(cuptiActivityDisable)                 \
    X(cuptiActivityFlushAll)                \
    X(cuptiActivityGetNextRecord)           \
    X(cuptiSubscribe)                       \
    X(cuptiUnsubscribe)                     \
    X(cuptiEnableCallback)                  \
    X(cuptiProfilerInitialize)              \
    X(cuptiProfilerGetCounterAvailability)  \
    X(cuptiDeviceGetChipName)               \
    X(cuptiProfilerHostInitialize)          \
    X(cuptiProfilerHostDeinitialize)        \
    X(cuptiProfilerHostConfigAddMetrics)    \
    X(cuptiProfilerHostGetConfigImageSize)  \
    X(cuptiProfilerHostGetConfigImage)      \
    X(cuptiProfilerHostGetNumOfPasses)      \
    X(cuptiProfilerHostEvaluateToGpuValues) \
    X(cuptiRangeProfilerEnable)             \
    X(cuptiRangeProfilerDisable)            \
    X(cuptiRangeProfilerSetConfig)          \
    X(cuptiRangeProfilerStart)              \
    X(cuptiRangeProfilerStop)               \
    X(cuptiRangeProfilerDecodeData)         \
    X(cuptiRangeProfilerGetCounterDataSize) \
    X(cuptiRangeProfilerCounterDataImageInitialize)

struct Cupti {
#define X(name) decltype(&::name) name = nullptr;
    SMT_CUPTI_FUNCTIONS(X)
#undef X
    std::string path;  // of the file that it came from
};

// The same one for all callers; it stays open. Null: there is none; `problem` says where it was looked for.
const Cupti* open_cupti(std::string* problem);

// A result in words, with what would have to be changed, where it can be changed.
std::string describe(const Cupti& cupti, const char* call, CUptiResult result);
// Whether the next try would end the same way.
bool is_final(CUptiResult result);

}  // namespace smt::profiler::collect
