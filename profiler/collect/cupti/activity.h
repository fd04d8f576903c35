// Kernel times from CUPTI's activity records.
//
// CUPTI asks for buffers and gives them back full, from threads of its own, by two functions that know no
// object: so there is one of this class at a time. CUPTI numbers calls of the driver, and its records of
// kernels have the number of the call that launched them. Which launch of ours that was is heard from a
// callback, which comes from inside the call, on the thread that makes it. (CUPTI's external correlation ids
// would need a record of every call of the driver: without those, and with those of launches alone, none came
// on an H200.)
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "profiler/collect/cupti/library.h"
#include "profiler/collect/times.h"

namespace smt::profiler::collect {

class ActivityTimes final : public Times {
public:
    explicit ActivityTimes(const Cupti& cupti) : cupti_(cupti) {}
    ~ActivityTimes() override;
    ActivityTimes(const ActivityTimes&) = delete;
    ActivityTimes& operator=(const ActivityTimes&) = delete;

    // Empty, or why not.
    std::string open();

    void before(uint64_t launch) override;
    void after() override;
    void collect(const Visit& visit) override;

private:
    static void CUPTIAPI called(void* times, CUpti_CallbackDomain domain, CUpti_CallbackId call,
                                const void* data);
    static void CUPTIAPI request(uint8_t** buffer, size_t* bytes, size_t* most_records);
    static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t* buffer, size_t bytes,
                                  size_t valid);
    void read(uint8_t* buffer, size_t valid);

    const Cupti& cupti_;
    bool open_ = false;
    CUpti_SubscriberHandle subscriber_ = nullptr;
    std::mutex mutex_;                                // the rest
    std::unordered_map<uint32_t, uint64_t> numbers_;  // ours, by CUPTI's of the call, until it has run
    std::vector<KernelTime> ready_;
};

}  // namespace smt::profiler::collect
