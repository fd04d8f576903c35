// What the persistent loop costs and how fast it stops, without a server: the facts that the dispatcher is
// built on. Prints JSON rows.
//
//   channels   do streams that wait for a word hold up others, of the same or a higher priority?
//   gate       cost of a write + a wait that is already satisfied, between two kernels
//   overhead   managed form against the program's own, interleaved
//   small      launches of one-wave kernels in a row
//   placement  with random quotas, where did blocks run, and how many workers at a time?
//   stop       from the host's write to the last worker gone, and whether every block ran exactly once
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "rewriter/device/smt_worker.h"

#define CHECK(call)                                                                             \
    do {                                                                                        \
        auto status_ = static_cast<int>(call);                                                  \
        if (status_) {                                                                          \
            std::printf("{\"error\": \"%s:%d %s: %d\"}\n", __FILE__, __LINE__, #call, status_); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

__device__ __forceinline__ void compute_body(const uint3 blockIdx, float* out, int rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = i, b = 1.0f + i * 1e-9f, c = 0.5f, d = 0.25f;
    for (int r = 0; r < rounds; ++r) {
        a = a * b + c;
        c = c * b + d;
        d = d * b + a;
    }
    out[i] += a + c + d;
}
__device__ __forceinline__ void stream_body(const uint3 blockIdx, const float4* in, float4* out) {
    const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = in[i];
    v.x += 1, v.y += 1, v.z += 1, v.w += 1;
    out[i] = v;
}
__device__ __forceinline__ void shared_body(const uint3 blockIdx, float* out, int rounds) {
    __shared__ float tile[1024];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i;
    __syncthreads();
    float sum = 0;
    for (int r = 0; r < rounds; ++r) {
        sum += tile[(threadIdx.x + r) % blockDim.x];
        if (r % 16 == 0) __syncthreads();
    }
    out[i] += sum;
}

__global__ void compute(float* out, int rounds) { compute_body(blockIdx, out, rounds); }
__global__ void stream(const float4* in, float4* out) { stream_body(blockIdx, in, out); }
__global__ void tiled(float* out, int rounds) { shared_body(blockIdx, out, rounds); }
__global__ void smt_compute(float* out, int rounds, smt::Launch launch) {
    smt::FreeWorker worker(launch);
    while (worker.next()) compute_body(worker.block(), out, rounds);
}
__global__ void smt_stream(const float4* in, float4* out, smt::Launch launch) {
    smt::FreeWorker worker(launch);
    while (worker.next()) stream_body(worker.block(), in, out);
}
__global__ void smt_tiled(float* out, int rounds, smt::Launch launch) {
    smt::Worker worker(launch);
    while (worker.next()) shared_body(worker.block(), out, rounds);
}
__global__ void flag(unsigned long long* when) { *when = smt::device::now(); }

using Clock = std::chrono::steady_clock;
static double us(Clock::time_point from) {
    return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
}

static CUstream make(int priority) {
    CUstream made;
    CHECK(cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, priority));
    return made;
}
static CUdeviceptr words, host_words_device;
static volatile uint64_t* host_words;
static int sms;

static void channels() {
    constexpr int kBlocked = 80, kTried = 40;
    std::vector<CUstream> blocked;
    for (int i = 0; i < kBlocked; ++i) blocked.push_back(make(0));
    for (int priority : {0, -1, -2, -5}) {
        std::vector<CUstream> tries;
        for (int i = 0; i < kTried; ++i) tries.push_back(make(priority));
        CHECK(cuCtxSynchronize());
        host_words[1] = 0;
        for (CUstream each : blocked)
            CHECK(cuStreamWaitValue64(each, host_words_device + 8, 1, CU_STREAM_WAIT_VALUE_GEQ));
        int went = 0;
        for (int i = 0; i < kTried; ++i) {
            host_words[16 + i] = 0;
            CHECK(cuStreamWriteValue64(tries[i], host_words_device + 8 * (16 + i), 7, 0));
        }
        auto start = Clock::now();
        while (us(start) < 20000) {
        }
        for (int i = 0; i < kTried; ++i) went += host_words[16 + i] == 7;
        host_words[1] = 1;
        CHECK(cuCtxSynchronize());
        std::printf(
            "{\"probe\": \"channels\", \"blocked\": %d, \"priority\": %d, \"tried\": %d, \"went\": %d}\n",
            kBlocked, priority, kTried, went);
    }
}

struct Managed {
    const char* name;
    const void* own;
    const void* managed;
    int threads;
    std::vector<void*> arguments;
};

static smt::Control* control;
static uint32_t next_ticket = 0;

static uint32_t chunk = 1;

static smt::Launch plan(uint32_t total, uint32_t workers, unsigned flags) {
    smt::Launch launch{};
    launch.control = control;
    launch.start = next_ticket;
    launch.total = total;
    launch.grid[0] = total;
    launch.grid[1] = launch.grid[2] = 1;
    launch.flags = flags;
    launch.chunk = chunk;
    launch.tickets = (total + chunk - 1) / chunk;
    next_ticket += (total + chunk - 1) / chunk + (flags & smt::kSingle ? 0 : workers);
    return launch;
}

static void launch_managed(const Managed& kernel, CUstream stream, uint32_t total, int per_sm,
                           bool single = false) {
    const uint32_t tickets = (total + chunk - 1) / chunk;
    uint32_t workers = std::min<uint32_t>(tickets, per_sm * sms);
    if (workers == tickets || single) single = true, workers = tickets;
    smt::Launch launch = plan(total, workers, single ? smt::kSingle : 0);
    std::vector<void*> arguments = kernel.arguments;
    arguments.push_back(&launch);
    CHECK(cudaLaunchKernel(kernel.managed, dim3(workers), dim3(kernel.threads), arguments.data(), 0, stream));
}
static void launch_own(const Managed& kernel, CUstream stream, uint32_t total) {
    CHECK(cudaLaunchKernel(kernel.own, dim3(total), dim3(kernel.threads),
                           const_cast<void**>(kernel.arguments.data()), 0, stream));
}

static double timed(CUstream stream, auto&& work) {
    CHECK(cuStreamSynchronize(stream));
    auto start = Clock::now();
    work();
    CHECK(cuStreamSynchronize(stream));
    return us(start);
}

static int occupancy(const void* kernel, int threads) {
    int blocks = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0));
    return blocks;
}

static void overhead(const Managed& kernel, const char* variant, uint32_t total, int rounds) {
    CUstream stream = make(0);
    const int fits = occupancy(kernel.managed, kernel.threads);
    for (int i = 0; i < 2; ++i)
        launch_own(kernel, stream, total), launch_managed(kernel, stream, total, fits);
    cudaFuncAttributes own{}, managed{};
    CHECK(cudaFuncGetAttributes(&own, kernel.own));
    CHECK(cudaFuncGetAttributes(&managed, kernel.managed));
    for (int i = 0; i < rounds; ++i) {
        double native = timed(stream, [&] { launch_own(kernel, stream, total); });
        double loop = timed(stream, [&] { launch_managed(kernel, stream, total, fits); });
        double single = timed(stream, [&] { launch_managed(kernel, stream, total, fits, true); });
        double chunked[3];
        for (int size : {4, 8, 16}) {
            chunk = size;
            chunked[size == 4 ? 0 : size / 8] =
                timed(stream, [&] { launch_managed(kernel, stream, total, fits); });
        }
        chunk = 1;
        std::printf(
            "{\"probe\": \"overhead\", \"kernel\": \"%s\", \"variant\": \"%s\", \"blocks\": %u, \"round\": "
            "%d, "
            "\"native_us\": %.2f, \"loop_us\": %.2f, \"single_us\": %.2f, \"chunk4_us\": %.2f, "
            "\"chunk8_us\": %.2f, \"chunk16_us\": %.2f, \"registers\": [%d, %d], \"fits\": [%d, %d]}\n",
            kernel.name, variant, total, i, native, loop, single, chunked[0], chunked[1], chunked[2],
            own.numRegs, managed.numRegs, occupancy(kernel.own, kernel.threads), fits);
    }
}

static void small(const Managed& kernel, uint32_t total) {
    CUstream stream = make(0);
    const int fits = occupancy(kernel.managed, kernel.threads);
    constexpr int kLaunches = 20000;
    CUstreamBatchMemOpParams gate[2] = {};
    gate[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_64, host_words_device + 64};
    gate[1].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_64, words};
    gate[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    for (int round = 0; round < 5; ++round) {
        double native = timed(stream, [&] {
            for (int i = 0; i < kLaunches; ++i) launch_own(kernel, stream, total);
        });
        double managed = timed(stream, [&] {
            for (int i = 0; i < kLaunches; ++i) launch_managed(kernel, stream, total, fits);
        });
        double gated = timed(stream, [&] {
            for (int i = 0; i < kLaunches; ++i) {
                launch_own(kernel, stream, total);
                CHECK(cuStreamBatchMemOp(stream, 2, gate, 0));
            }
        });
        double marked = timed(stream, [&] {
            for (int i = 0; i < kLaunches; ++i) {
                launch_own(kernel, stream, total);
                CHECK(cuStreamWriteValue64(stream, host_words_device + 64, i, 0));
            }
        });
        std::printf(
            "{\"probe\": \"small\", \"kernel\": \"%s\", \"blocks\": %u, \"round\": %d, \"native_us\": %.3f, "
            "\"managed_us\": %.3f, \"gated_us\": %.3f, \"marked_us\": %.3f}\n",
            kernel.name, total, round, native / kLaunches, managed / kLaunches, gated / kLaunches,
            marked / kLaunches);
        if (next_ticket > 1u << 30) {
            CHECK(cuMemsetD8((CUdeviceptr)control, 0, sizeof(smt::Control)));
            next_ticket = 0;
        }
    }
}

// Stops a launch again and again until it is complete. Every block adds 1 to its own counter through `out`.
static void stops(const Managed& kernel, uint32_t total, int per_sm, int times, CUstream control_stream,
                  std::mt19937& random) {
    CUstream stream = make(0), other = make(-5);
    struct Head {
        uint64_t word;
        uint32_t refused, unused;
    } head{};
    std::vector<double> latency, other_latency;
    double native = timed(stream, [&] { launch_managed(kernel, stream, total, per_sm); });
    for (int run = 0; run < times; ++run) {
        uint32_t done = 0;
        int left = 3;
        while (done < total) {
            CHECK(cuMemsetD8((CUdeviceptr)control, 0, 16));
            CHECK(cuCtxSynchronize());
            uint32_t workers = std::min<uint32_t>(total - done, per_sm * sms);
            smt::Launch launch{};
            launch.control = control;
            launch.total = total - done;
            launch.chunk = 1;
            launch.tickets = total - done;
            launch.origin[0] = done;
            launch.grid[0] = total;
            launch.grid[1] = launch.grid[2] = 1;
            launch.flags = workers == total - done ? smt::kSingle : 0;
            std::vector<void*> arguments = kernel.arguments;
            arguments.push_back(&launch);
            host_words[3] = 0;
            CHECK(cudaLaunchKernel(kernel.managed, dim3(workers), dim3(kernel.threads), arguments.data(), 0,
                                   stream));
            CHECK(cuStreamWriteValue64(stream, host_words_device + 24, 1, 0));
            if (left-- > 0) {
                double delay = std::uniform_real_distribution<double>(5, native * 0.5)(random);
                auto start = Clock::now();
                while (us(start) < delay) {
                }
                if (host_words[3] == 0) {
                    auto decided = Clock::now();
                    CHECK(
                        cuStreamWriteValue32(control_stream, (CUdeviceptr)control + 4, 1 | smt::kStopBit, 0));
                    host_words[4] = 0;
                    flag<<<1, 1, 0, other>>>((unsigned long long*)(host_words_device + 32));
                    while (host_words[3] == 0) {
                    }
                    latency.push_back(us(decided));
                    while (host_words[4] == 0) {
                    }
                    other_latency.push_back(us(decided));
                }
            }
            CHECK(cuStreamSynchronize(stream));
            CHECK(cuMemcpyDtoH(&head, (CUdeviceptr)control, 16));
            uint32_t ran = std::min<uint32_t>((uint32_t)head.word - head.refused, total - done);
            done += ran;
        }
    }
    std::sort(latency.begin(), latency.end());
    std::sort(other_latency.begin(), other_latency.end());
    auto at = [](std::vector<double>& v, double q) {
        return v.empty() ? 0 : v[std::min(v.size() - 1, size_t(q * v.size()))];
    };
    std::printf(
        "{\"probe\": \"stop\", \"kernel\": \"%s\", \"blocks\": %u, \"per_sm\": %d, \"alone_us\": %.1f, "
        "\"block_us\": %.2f, "
        "\"stops\": %zu, \"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f, \"other_p50\": %.1f, \"other_p99\": "
        "%.1f}\n",
        kernel.name, total, per_sm, native, native * per_sm * sms / total, latency.size(), at(latency, .5),
        at(latency, .99), at(latency, 1), at(other_latency, .5), at(other_latency, .99));
}

// Random quotas for each SM: did every block run where the quota allowed one, and were there ever more
// workers?
static void placement(const Managed& kernel, uint32_t total, int runs, std::mt19937& random) {
    CUstream stream = make(0);
    constexpr uint32_t kEntries = 1u << 16;
    CUdeviceptr map;
    CHECK(cuMemAlloc(&map, kEntries * sizeof(smt::Mapping)));
    const int fits = occupancy(kernel.managed, kernel.threads);
    uint64_t blocks = 0, astray = 0, crowded = 0, workers = 0;
    for (int run = 0; run < runs; ++run) {
        smt::Control fresh{};
        fresh.map = (smt::Mapping*)map;
        fresh.map_mask = kEntries - 1;
        for (int sm = 0; sm < sms; ++sm) fresh.quota[sm] = random() % 3 ? random() % (fits + 1) : 0;
        fresh.quota[random() % sms] = fits;
        CHECK(cuMemcpyHtoD((CUdeviceptr)control, &fresh, sizeof fresh));
        smt::Launch launch{};
        launch.control = control;
        launch.total = launch.tickets = total;
        launch.chunk = 1;
        launch.grid[0] = total;
        launch.grid[1] = launch.grid[2] = 1;
        launch.flags = smt::kHeld | smt::kMapped;
        std::vector<void*> arguments = kernel.arguments;
        arguments.push_back(&launch);
        CHECK(cudaLaunchKernel(kernel.managed, dim3(fits * sms), dim3(kernel.threads), arguments.data(), 0,
                               stream));
        CHECK(cuStreamSynchronize(stream));
        smt::Control after{};
        CHECK(cuMemcpyDtoH(&after, (CUdeviceptr)control, sizeof after));
        std::vector<smt::Mapping> entries(after.mapped);
        CHECK(cuMemcpyDtoH(entries.data(), map, entries.size() * sizeof(smt::Mapping)));
        std::vector<std::vector<std::pair<uint64_t, int>>> moments(sms);
        uint64_t here = 0;
        for (const smt::Mapping& each : entries) {
            here += each.blocks;
            if (fresh.quota[each.sm] == 0) astray += each.blocks;
            moments[each.sm].push_back({each.began, 1});
            moments[each.sm].push_back({each.ended, -1});
        }
        for (int sm = 0; sm < sms; ++sm) {
            std::sort(moments[sm].begin(), moments[sm].end());
            int now = 0;
            for (auto& [when, change] : moments[sm])
                crowded += (now += change) > fresh.quota[sm] && change > 0;
            if (after.resident[sm] != 0) ++crowded;
        }
        blocks += here;
        workers += entries.size();
        if (here != total) std::printf("{\"probe\": \"placement\", \"incomplete\": %lu}\n", total - here);
    }
    std::printf(
        "{\"probe\": \"placement\", \"kernel\": \"%s\", \"runs\": %d, \"blocks\": %lu, \"workers\": %lu, "
        "\"astray\": %lu, "
        "\"crowded\": %lu}\n",
        kernel.name, runs, blocks, workers, astray, crowded);
}

int main(int argc, char**) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(nullptr));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cuMemAlloc(&words, 4096));
    CHECK(cuMemsetD8(words, 0xff, 8));
    CHECK(cuMemsetD8(words + 7, 0x3f, 1));
    void* pinned;
    CHECK(cuMemHostAlloc(&pinned, 1 << 16, CU_MEMHOSTALLOC_DEVICEMAP));
    std::memset(pinned, 0, 1 << 16);
    host_words = (volatile uint64_t*)pinned;
    CHECK(cuMemHostGetDevicePointer(&host_words_device, pinned, 0));
    CHECK(cuMemAlloc((CUdeviceptr*)&control, sizeof(smt::Control)));
    CHECK(cuMemsetD8((CUdeviceptr)control, 0, sizeof(smt::Control)));

    constexpr uint32_t kBlocks = 21120;
    float *out, *in;
    CHECK(cudaMalloc(&out, 1ull << 30));
    CHECK(cudaMalloc(&in, 1ull << 30));
    CHECK(cudaMemset(out, 0, 1ull << 30));
    static int rounds_long = 4000, rounds_short = 40, rounds_tiled = 512;
    Managed compute_long{"compute", (void*)compute, (void*)smt_compute, 256, {&out, &rounds_long}};
    Managed compute_short{"compute_short", (void*)compute, (void*)smt_compute, 256, {&out, &rounds_short}};
    Managed tiled_kernel{"tiled", (void*)tiled, (void*)smt_tiled, 256, {&out, &rounds_tiled}};
    Managed stream_kernel{"stream", (void*)stream, (void*)smt_stream, 256, {&in, &out}};
    flag<<<1, 1>>>((unsigned long long*)words);  // loaded now, not while a stream waits
    CHECK(cudaDeviceSynchronize());
    CHECK(cuMemsetD8(words, 0xff, 8));
    CHECK(cuMemsetD8(words + 7, 0x3f, 1));
    if (argc > 1) channels();
    overhead(compute_long, "long", kBlocks, 10);
    overhead(compute_short, "short", 1 << 20, 10);
    overhead(tiled_kernel, "tiled", kBlocks, 10);
    overhead(stream_kernel, "stream", 1 << 18, 10);
    small(compute_short, 1);
    small(compute_short, 132);
    CUstream control_stream = make(-5);
    std::mt19937 random(1);
    CHECK(cuMemsetD8((CUdeviceptr)control, 0, sizeof(smt::Control)));
    for (int per_sm : {8, 4, 2}) stops(compute_long, kBlocks, per_sm, 60, control_stream, random);
    next_ticket = 0;
    CHECK(cuMemsetD8((CUdeviceptr)control, 0, 16));
    stops(stream_kernel, 1 << 18, 8, 60, control_stream, random);
    next_ticket = 0;
    CHECK(cuMemsetD8((CUdeviceptr)control, 0, 16));
    stops(tiled_kernel, kBlocks, 8, 60, control_stream, random);
    for (const Managed& each : {compute_short, tiled_kernel, stream_kernel})
        placement(each, kBlocks, 100, random);
    std::puts("{\"probe\": \"end\"}");
}
