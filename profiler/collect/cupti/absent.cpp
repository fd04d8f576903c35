// In place of CUPTI where the toolkit had no headers of it when smt was built.
#include "profiler/collect/counters.h"
#include "profiler/collect/times.h"

namespace smt::profiler::collect {

namespace {

constexpr char kProblem[] = "smt was built without CUPTI's headers (cupti.h; pip: nvidia-cuda-cupti)";

}  // namespace

std::unique_ptr<Times> open_cupti_times(std::string* problem) {
    *problem = kProblem;
    return nullptr;
}

std::unique_ptr<LaunchCounters> open_cupti_counters(CUcontext, CUdevice, std::string* problem) {
    *problem = kProblem;
    return nullptr;
}

}  // namespace smt::profiler::collect
