#include "profiler/collect/cupti/activity.h"

#include <atomic>
#include <cstdlib>

namespace smt::profiler::collect {

namespace {

constexpr size_t kBufferBytes = 1u << 20;
constexpr size_t kAlignment = 8;
constexpr CUpti_ActivityKind kKind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
constexpr CUpti_CallbackId kLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                          CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                          CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel};

thread_local uint64_t current_launch = 0;  // 0: none whose time is asked for
std::atomic<ActivityTimes*> only{nullptr};

}  // namespace

ActivityTimes::~ActivityTimes() {
    if (!open_) return;
    if (subscriber_) cupti_.cuptiUnsubscribe(subscriber_);
    cupti_.cuptiActivityDisable(kKind);
    cupti_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    only.store(nullptr);
}

std::string ActivityTimes::open() {
    ActivityTimes* none = nullptr;
    if (!only.compare_exchange_strong(none, this)) return "kernel times are being collected already";
    open_ = true;
    if (CUptiResult result = cupti_.cuptiActivityRegisterCallbacks(request, complete))
        return describe(cupti_, "cuptiActivityRegisterCallbacks", result);
    if (CUptiResult result = cupti_.cuptiSubscribe(&subscriber_, called, this))
        return describe(cupti_, "cuptiSubscribe", result);
    for (const CUpti_CallbackId call : kLaunches) {
        if (CUptiResult result = cupti_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, call))
            return describe(cupti_, "cuptiEnableCallback", result);
    }
    if (CUptiResult result = cupti_.cuptiActivityEnable(kKind))
        return describe(cupti_, "cuptiActivityEnable", result);
    return "";
}

void ActivityTimes::before(uint64_t launch) { current_launch = launch; }

void ActivityTimes::after() { current_launch = 0; }

void ActivityTimes::called(void* times, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (call.callbackSite != CUPTI_API_ENTER || current_launch == 0) return;
    auto& mine = *static_cast<ActivityTimes*>(times);
    std::lock_guard lock(mine.mutex_);
    mine.numbers_[call.correlationId] = current_launch;
}

// Forced: what is over is told, whether or not its buffer is full.
void ActivityTimes::collect(const Visit& visit) {
    cupti_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    std::vector<KernelTime> ready;
    {
        std::lock_guard lock(mutex_);
        ready.swap(ready_);
    }
    for (const KernelTime& each : ready) visit(each);
}

void ActivityTimes::request(uint8_t** buffer, size_t* bytes, size_t* most_records) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
    *bytes = *buffer ? kBufferBytes : 0;
    *most_records = 0;  // as many as fit
}

void ActivityTimes::complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    if (ActivityTimes* times = only.load()) times->read(buffer, valid);
    std::free(buffer);
}

void ActivityTimes::read(uint8_t* buffer, size_t valid) {
    std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (valid && cupti_.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != kKind) continue;
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        const auto number = numbers_.find(kernel.correlationId);  // known since before it began
        if (number == numbers_.end()) continue;
        if (kernel.start != 0 && kernel.end >= kernel.start)
            ready_.push_back({number->second, kernel.start, kernel.end});
        numbers_.erase(number);
    }
}

std::unique_ptr<Times> open_cupti_times(std::string* problem) {
    const Cupti* cupti = open_cupti(problem);
    if (!cupti) return nullptr;
    auto times = std::make_unique<ActivityTimes>(*cupti);
    *problem = times->open();
    if (!problem->empty()) return nullptr;
    return times;
}

}  // namespace smt::profiler::collect
