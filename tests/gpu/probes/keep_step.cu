// Do two streams keep step, whose launches are over at different times and have room beside each other?
//
//     nvcc -std=c++20 -O2 -arch=sm_90 -o keep_step keep_step.cu -lcuda && ./keep_step
//
// What the dispatcher does for a run with quotas, natively: a table is copied to the device, an event recorded, workers launched, what they left
// behind copied back, and a word written; when the host has seen the word it does the same again. Half of the workers find no place, and leave.
// One JSON row for each set of these steps: how long a run takes alone and beside the other one, in us.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                                                 \
    do {                                                                                            \
        const auto status_ = static_cast<int>(call);                                                \
        if (status_) std::printf("{\"error\": \"%s:%d %s: %d\"}\n", __FILE__, __LINE__, #call, status_), std::exit(1); \
    } while (0)

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 256, kFits = 8, kMostSms = 256, kRuns = 60;

struct Control {
    unsigned long long word;
    unsigned resident[kMostSms];
    unsigned char quota[kMostSms];
};

__device__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void __launch_bounds__(kThreads) work(Control* control, unsigned tickets, unsigned long long each_ns) {
    __shared__ unsigned ticket;
    __shared__ bool placed;
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) {
        placed = atomicAdd(&control->resident[sm], 1u) < control->quota[sm];
        if (!placed) atomicSub(&control->resident[sm], 1u);
    }
    __syncthreads();
    if (!placed) return;
    for (;;) {
        if (threadIdx.x == 0) ticket = static_cast<unsigned>(atomicAdd(&control->word, 1ull));
        __syncthreads();
        if (ticket >= tickets) break;
        for (const unsigned long long begin = now(); now() - begin < each_ns;) {}
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicSub(&control->resident[sm], 1u);
}

struct Steps {
    const char* name;
    bool table, event, report, extra;   // copied in; recorded; copied back in advance; twice as many workers as there are places
};

struct Side {
    Side(int sms, unsigned tickets, unsigned long long each_ns) : sms_(sms), tickets_(tickets), each_ns_(each_ns) {
        CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
        CHECK(cudaMalloc(&control_, sizeof(Control)));
        CHECK(cudaMemset(control_, 0, sizeof(Control)));
        CHECK(cudaMemset(control_->quota, kFits / 2, kMostSms));
        CHECK(cudaHostAlloc(&host_, 64, cudaHostAllocMapped));
        std::memset(host_, 0, 64);
    }
    std::atomic<uint64_t>& word() { return *static_cast<std::atomic<uint64_t>*>(static_cast<void*>(host_)); }
    void start(const Steps& steps) {
        began_ = Clock::now();
        CHECK(cuStreamWriteValue64(stream_, address(&control_->word), 0, 0));
        unsigned char table[kMostSms];
        std::memset(table, kFits / 2, sizeof table);
        if (steps.table) CHECK(cudaMemcpyAsync(control_->quota, table, sizeof table, cudaMemcpyHostToDevice, stream_));
        if (steps.event) CHECK(cudaEventRecord(event_, stream_));
        work<<<sms_ * (steps.extra ? kFits : kFits / 2), kThreads, 0, stream_>>>(control_, tickets_, each_ns_);
        if (steps.report) CHECK(cudaMemcpyAsync(host_ + 2, control_, 12, cudaMemcpyDeviceToHost, stream_));
        CHECK(cuStreamWriteValue64(stream_, address(host_), ++run_, 0));
    }
    bool over() { return word().load() >= run_; }
    static CUdeviceptr address(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

    int sms_;
    unsigned tickets_;
    unsigned long long each_ns_;
    cudaStream_t stream_;
    cudaEvent_t event_;
    Control* control_;
    uint64_t* host_;
    uint64_t run_ = 0;
    Clock::time_point began_;
    std::vector<double> us_;
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

// Each of them again and again, until the first has had its runs.
void run(const Steps& steps, std::vector<Side*> sides) {
    for (Side* side : sides) side->us_.clear(), side->start(steps);
    while (sides[0]->us_.size() < kRuns) {
        for (Side* side : sides) {
            if (!side->over()) continue;
            side->us_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - side->began_).count());
            for (const auto until = Clock::now() + std::chrono::microseconds(60); Clock::now() < until;) {}   // the program answers
            side->start(steps);
        }
    }
    CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    const int sms = properties.multiProcessorCount;
    const unsigned places = static_cast<unsigned>(sms) * kFits / 2;
    Side longer(sms, places * 38, 100'000), shorter(sms, places * 13, 100'000);   // 3.8 and 1.3 ms
    const Steps all[] = {{"bare", false, false, false, false}, {"report", false, false, true, false},   {"table", true, false, false, false},
                         {"extra workers", false, false, false, true}, {"table, event, extra workers", true, true, false, true},
                         {"all", true, true, true, true}};
    for (const Steps& steps : all) {
        run(steps, {&longer});
        const double long_alone = median(longer.us_);
        run(steps, {&shorter});
        const double short_alone = median(shorter.us_);
        run(steps, {&longer, &shorter});
        std::printf("{\"steps\": \"%s\", \"long_alone_us\": %.0f, \"short_alone_us\": %.0f, \"long_us\": %.0f, \"short_us\": %.0f}\n", steps.name, long_alone, short_alone,
                    median(longer.us_), median(shorter.us_));
    }
    std::printf("{\"device\": \"%s\"}\n", properties.name);
}
