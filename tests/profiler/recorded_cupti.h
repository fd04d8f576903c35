// A CUPTI that has no GPU: it gives out activity buffers that were recorded, and says what a test wants of
// counters. One at a time: CUPTI's functions know no object.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "profiler/collect/cupti/library.h"
#include "profiler/collect/metrics.h"

namespace smt::profiler::collect {

class RecordedCupti {
public:
    RecordedCupti() {
        current = this;
        fill_activity();
        fill_counters();
    }
    ~RecordedCupti() { current = nullptr; }
    RecordedCupti(const RecordedCupti&) = delete;
    RecordedCupti& operator=(const RecordedCupti&) = delete;

    Cupti table;
    std::vector<std::vector<uint8_t>> buffers;  // handed out at the next flush
    std::vector<std::string> calls;             // of the range profiler
    std::map<std::string, CUptiResult> fails;   // what a call answers, if not success
    Sample sample{};                            // of every launch

    // The bytes of records, one behind the other.
    template <class Record>
    static void append(std::vector<uint8_t>& buffer, const Record& record) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(&record);
        buffer.insert(buffer.end(), bytes, bytes + sizeof record);
    }
    static CUpti_ActivityKernel10 kernel(uint32_t correlation, uint64_t start, uint64_t end) {
        CUpti_ActivityKernel10 record{};
        record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        record.correlationId = correlation;
        record.start = start;
        record.end = end;
        return record;
    }
    // The driver is called to launch: what CUPTI tells of it.
    void launch(uint32_t correlation, CUpti_ApiCallbackSite site = CUPTI_API_ENTER) {
        CUpti_CallbackData data{};
        data.callbackSite = site;
        data.correlationId = correlation;
        callback_(listener_, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    }

private:
    static inline RecordedCupti* current = nullptr;
    CUpti_BuffersCallbackRequestFunc request_ = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
    CUpti_CallbackFunc callback_ = nullptr;
    void* listener_ = nullptr;

    CUptiResult answer(const char* call) {
        calls.push_back(call);
        const auto failure = fails.find(call);
        return failure == fails.end() ? CUPTI_SUCCESS : failure->second;
    }

    CUptiResult flush() {
        for (const std::vector<uint8_t>& each : std::exchange(buffers, {})) {
            uint8_t* buffer = nullptr;
            size_t bytes = 0, most = 0;
            request_(&buffer, &bytes, &most);
            std::memcpy(buffer, each.data(), each.size());
            complete_(nullptr, 0, buffer, bytes, each.size());
        }
        return CUPTI_SUCCESS;
    }

    static CUptiResult CUPTIAPI next(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
        uint8_t* const at =
            *record ? reinterpret_cast<uint8_t*>(*record) + sizeof(CUpti_ActivityKernel10) : buffer;
        if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
        *record = reinterpret_cast<CUpti_Activity*>(at);
        return CUPTI_SUCCESS;
    }

    void fill_activity() {
        table.cuptiGetResultString = [](CUptiResult, const char** text) {
            return *text = "said so", CUPTI_SUCCESS;
        };
        table.cuptiActivityRegisterCallbacks = [](auto request, auto complete) {
            current->request_ = request;
            current->complete_ = complete;
            return CUPTI_SUCCESS;
        };
        table.cuptiActivityEnable = [](CUpti_ActivityKind) { return current->answer("activity enable"); };
        table.cuptiActivityDisable = [](CUpti_ActivityKind) { return current->answer("activity disable"); };
        table.cuptiActivityFlushAll = [](uint32_t) { return current->flush(); };
        table.cuptiActivityGetNextRecord = next;
        table.cuptiSubscribe = [](CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                                  void* listener) {
            *handle = reinterpret_cast<CUpti_SubscriberHandle>(8);
            current->callback_ = callback;
            current->listener_ = listener;
            return current->answer("subscribe");
        };
        table.cuptiUnsubscribe = [](CUpti_SubscriberHandle) { return current->answer("unsubscribe"); };
        table.cuptiEnableCallback = [](uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                                       CUpti_CallbackId) { return current->answer("callback"); };
    }

    void fill_counters() {
        table.cuptiProfilerInitialize = [](auto*) { return current->answer("initialize"); };
        table.cuptiDeviceGetChipName = [](auto* of) {
            return of->pChipName = "GH100", current->answer("chip");
        };
        table.cuptiProfilerGetCounterAvailability = [](auto* of) {
            of->counterAvailabilityImageSize = 8;
            return current->answer("availability");
        };
        table.cuptiProfilerHostInitialize = [](auto* of) {
            of->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(8);
            return current->answer("host");
        };
        table.cuptiProfilerHostDeinitialize = [](auto*) { return current->answer("end host"); };
        table.cuptiProfilerHostConfigAddMetrics = [](auto*) { return current->answer("metrics"); };
        table.cuptiProfilerHostGetConfigImageSize = [](auto* of) {
            return of->configImageSize = 16, current->answer("config size");
        };
        table.cuptiProfilerHostGetConfigImage = [](auto*) { return current->answer("config"); };
        table.cuptiProfilerHostGetNumOfPasses = [](auto* of) {
            return of->numOfPasses = 3, current->answer("passes");
        };
        table.cuptiProfilerHostEvaluateToGpuValues = [](auto* of) {
            std::copy(current->sample.begin(), current->sample.end(), of->pMetricValues);
            return current->answer("evaluate");
        };
        table.cuptiRangeProfilerEnable = [](auto* of) {
            of->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(8);
            return current->answer("enable");
        };
        table.cuptiRangeProfilerDisable = [](auto*) { return current->answer("disable"); };
        table.cuptiRangeProfilerSetConfig = [](auto*) { return current->answer("set"); };
        table.cuptiRangeProfilerStart = [](auto*) { return current->answer("start"); };
        table.cuptiRangeProfilerStop = [](auto*) { return current->answer("stop"); };
        table.cuptiRangeProfilerDecodeData = [](auto*) { return current->answer("decode"); };
        table.cuptiRangeProfilerGetCounterDataSize = [](auto* of) {
            return of->counterDataSize = 32, current->answer("size");
        };
        table.cuptiRangeProfilerCounterDataImageInitialize = [](auto*) { return current->answer("clear"); };
    }
};

}  // namespace smt::profiler::collect
