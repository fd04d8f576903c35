// Do two streams keep step, whose launches are over at different times and have room beside each other?
//
//     nvcc -std=c++20 -O2 -arch=sm_90 -o keep_step keep_step.cu -lcuda && ./keep_step [WORKERS.csv]
//
// What the dispatcher does for a run with quotas, natively: a table is copied to the device, an event
// recorded, workers launched, what they left behind copied back, and a word written; when the host has seen
// the word it does the same again. Half of the workers find no place, and leave. One JSON row for each set of
// these steps and side, alone and beside the other one, in us: how long a run takes, how long its workers are
// there, and how long no worker is between two runs. With a file's name, a line there for each worker of the
// first runs: side, run, CTA, SM, rounds, begin and end in ns.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "probe.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 256, kFits = 8, kMostSms = 256, kRuns = 60, kMostRuns = 8192;

struct Times {
    unsigned long long first,
        last;               // when the first worker with a place began, and when the last ended, in ns
    unsigned placed, left;  // workers
    unsigned taken;         // tickets
};
struct Worker {
    unsigned long long begin, end;
    unsigned sm, rounds;
};
constexpr int kRunsOfWorkers = 32, kMostWorkers = 2048;
struct Control {
    unsigned long long word;
    Worker workers[kRunsOfWorkers][kMostWorkers];
    unsigned resident[kMostSms];
    unsigned char quota[kMostSms];
    Times times[kMostRuns];
};

__global__ void __launch_bounds__(kThreads) work(Control* control, unsigned run, unsigned tickets,
                                                 unsigned long long each_ns, volatile uint64_t* over) {
    __shared__ unsigned ticket;
    __shared__ bool placed;
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    Times& times = control->times[run % kMostRuns];
    const bool leader = threadIdx.x == 0;
    if (leader) {
        placed = atomicAdd(&control->resident[sm], 1u) < control->quota[sm];
        if (!placed)
            atomicSub(&control->resident[sm], 1u);
        else
            atomicMin(&times.first, now()), atomicAdd(&times.placed, 1u);
    }
    __syncthreads();
    const unsigned long long began = now();
    unsigned rounds = 0;
    if (placed) {
        for (;; ++rounds) {
            if (leader) ticket = atomicAdd(&times.taken, 1u);
            __syncthreads();
            if (ticket >= tickets) break;
            for (const unsigned long long begin = now(); now() - begin < each_ns;) {
            }
            __syncthreads();
        }
    }
    if (!leader) return;
    if (placed && run < kRunsOfWorkers) control->workers[run][blockIdx.x] = {began, now(), sm, rounds};
    if (placed) atomicMax(&times.last, now()), atomicSub(&control->resident[sm], 1u);
    __threadfence();
    if (atomicAdd(&times.left, 1u) + 1 == gridDim.x && over) {
        __threadfence_system();
        *over = run;
    }
}

enum class End { kWrite, kEvent, kWorkers };

struct Steps {
    const char* name;
    bool reset, table, event, report, extra;  // a word is written; a table copied in; recorded; copied back
                                              // in advance; twice as many workers as there are places
    End end;                                  // what says that it is over
};

struct Side {
    Side(int sms, unsigned each, unsigned long long each_ns) : sms_(sms), each_(each), each_ns_(each_ns) {
        CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&over_, cudaEventDisableTiming));
        CHECK(cudaMalloc(&control_, sizeof(Control)));
        CHECK(cudaHostAlloc(&host_, 64, cudaHostAllocMapped));
        clear();
    }
    void clear() {
        std::memset(host_, 0, 64);
        std::vector<Times> times(kMostRuns, {~0ull, 0, 0, 0, 0});
        CHECK(cudaMemset(control_, 0, sizeof(Control)));
        CHECK(cudaMemset(control_->quota, kFits / 2, kMostSms));
        CHECK(cudaMemcpy(control_->times, times.data(), kMostRuns * sizeof times[0], cudaMemcpyHostToDevice));
        run_ = 0;
        us_.clear();
    }
    std::atomic<uint64_t>& word() { return *static_cast<std::atomic<uint64_t>*>(static_cast<void*>(host_)); }
    void start(const Steps& steps) {
        began_ = Clock::now();
        const unsigned workers = sms_ * (steps.extra ? kFits : kFits / 2), tickets = sms_ * kFits / 2 * each_;
        if (steps.reset) CHECK(cuStreamWriteValue64(stream_, address(&control_->word), 0, 0));
        unsigned char table[kMostSms];
        std::memset(table, kFits / 2, sizeof table);
        if (steps.table)
            CHECK(cudaMemcpyAsync(control_->quota, table, sizeof table, cudaMemcpyHostToDevice, stream_));
        if (steps.event) CHECK(cudaEventRecord(event_, stream_));
        work<<<workers, kThreads, 0, stream_>>>(control_, ++run_, tickets, each_ns_,
                                                steps.end == End::kWorkers ? host_ : nullptr);
        if (steps.report) CHECK(cudaMemcpyAsync(host_ + 2, control_, 12, cudaMemcpyDeviceToHost, stream_));
        if (steps.end == End::kWrite) CHECK(cuStreamWriteValue64(stream_, address(host_), run_, 0));
        if (steps.end == End::kEvent) CHECK(cudaEventRecord(over_, stream_));
    }
    bool over(const Steps& steps) {
        return steps.end == End::kEvent ? cudaEventQuery(over_) == cudaSuccess : word().load() >= run_;
    }
    static CUdeviceptr address(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

    int sms_;
    unsigned each_;
    unsigned long long each_ns_;
    cudaStream_t stream_;
    cudaEvent_t event_, over_;
    Control* control_;
    uint64_t* host_;
    uint64_t run_ = 0;
    Clock::time_point began_;
    std::vector<double> us_;
};

void print(const Side& side, const char* what, const char* name) {
    std::vector<Times> times(kMostRuns);
    CHECK(
        cudaMemcpy(times.data(), side.control_->times, kMostRuns * sizeof times[0], cudaMemcpyDeviceToHost));
    std::vector<double> busy, gap, placed;
    for (size_t i = 2; i + 1 < side.run_; ++i) {
        busy.push_back((times[i].last - times[i].first) / 1e3);
        gap.push_back((static_cast<double>(times[i].first) - times[i - 1].last) / 1e3);
        placed.push_back(times[i].placed);
    }
    std::printf(
        "{\"steps\": \"%s\", \"side\": \"%s\", \"runs\": %zu, \"us\": %.0f, \"busy_us\": %.0f, "
        "\"between_us\": %.0f, \"placed\": %.0f, \"first\": [",
        name, what, side.us_.size(), median(side.us_), median(busy), median(gap), median(placed));
    for (size_t i = 0; i < std::min<size_t>(6, busy.size()); ++i)
        std::printf("%s[%.0f, %.0f, %.0f]", i ? ", " : "", gap[i], busy[i], placed[i]);
    std::printf("]}\n");
}

// A line a worker of the first runs.
void write(const Side& side, const char* what, std::FILE* file) {
    std::vector<Worker> workers(kRunsOfWorkers * kMostWorkers);
    CHECK(cudaMemcpy(workers.data(), side.control_->workers, workers.size() * sizeof workers[0],
                     cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < workers.size(); ++i) {
        if (workers[i].begin)
            std::fprintf(file, "%s,%zu,%zu,%u,%u,%llu,%llu\n", what, i / kMostWorkers, i % kMostWorkers,
                         workers[i].sm, workers[i].rounds, workers[i].begin, workers[i].end);
    }
}

// Each of them again and again, until the first has had its runs.
void run(const Steps& steps, std::vector<Side*> sides) {
    for (Side* side : sides) side->clear();
    for (Side* side : sides) side->start(steps);
    while (sides[0]->us_.size() < kRuns) {
        for (Side* side : sides) {
            if (!side->over(steps)) continue;
            side->us_.push_back(
                std::chrono::duration<double, std::micro>(Clock::now() - side->began_).count());
            for (const auto until = Clock::now() + std::chrono::microseconds(60); Clock::now() < until;) {
            }  // the program answers
            side->start(steps);
        }
    }
    CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main(int argc, char** argv) {
    std::FILE* const file = argc > 1 ? std::fopen(argv[1], "w") : nullptr;
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    Side longer(properties.multiProcessorCount, 38, 100'000),
        shorter(properties.multiProcessorCount, 13, 100'000);  // 3.8 and 1.3 ms
    const Steps all[] = {{"launch alone", false, false, false, false, false, End::kWorkers},
                         {"event", false, false, false, false, false, End::kEvent},
                         {"write", false, false, false, false, false, End::kWrite},
                         {"reset, write", true, false, false, false, false, End::kWrite},
                         {"reset, extra", true, false, false, false, true, End::kWrite},
                         {"reset, table, event, extra, report", true, true, true, true, true, End::kWrite}};
    for (const Steps& steps : all) {
        run(steps, {&longer});
        print(longer, "long alone", steps.name);
        run(steps, {&shorter});
        print(shorter, "short alone", steps.name);
        run(steps, {&longer, &shorter});
        print(longer, "long", steps.name);
        print(shorter, "short", steps.name);
        if (file && &steps == all) write(longer, "long", file), write(shorter, "short", file);
    }
    std::printf("{\"device\": \"%s\"}\n", properties.name);
}
