// What can a stream of a green context do, for a program that lives in the primary context? Kernels loaded
// there, its memory, its events; on which SMs they run and what these are called; what a launch costs; how
// long a small kernel waits behind a long one, confined or not. One JSON line an answer. No smt in it: run it
// natively. It is one file: each question measures in the contexts and with the kernels that the one before
// made.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                                                     \
    do {                                                                                                \
        if (CUresult status_ = (call))                                                                  \
            std::printf("{\"error\": %d, \"line\": %d, \"call\": \"%s\"}\n", status_, __LINE__, #call); \
    } while (0)

namespace {

// where: each block writes %smid + 1 into out[its number], and keeps its SM for so many nanoseconds.
constexpr const char* kPtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry where(.param .u64 out, .param .u64 spin) {
    .reg .pred %p<3>; .reg .u32 %r<4>; .reg .u64 %a<8>;
    mov.u64 %a1, %globaltimer;
    ld.param.u64 %a2, [out]; ld.param.u64 %a3, [spin];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %smid; add.u32 %r2, %r2, 1;
    mul.wide.u32 %a4, %r1, 4; add.u64 %a4, %a2, %a4;
    st.global.u32 [%a4], %r2;
again:
    mov.u64 %a5, %globaltimer; sub.u64 %a5, %a5, %a1;
    setp.lt.u64 %p1, %a5, %a3;
    @%p1 bra again;
    ret;
}
.visible .entry empty() { ret; }
)";

constexpr unsigned kBlocks = 4096;
constexpr int kSms = 132;
CUdevice device;
CUcontext primary;
CUfunction where, empty;
CUdeviceptr out;
std::vector<uint32_t> host(kBlocks);

double now_us() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

CUresult launch(CUstream stream, CUfunction function, unsigned grid, unsigned block, uint64_t spin_ns,
                CUlaunchAttribute* attribute = nullptr) {
    void* parameters[] = {&out, &spin_ns};
    CUlaunchConfig config{};
    config.gridDimX = grid, config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = block, config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = attribute, config.numAttrs = attribute ? 1 : 0;
    return cuLaunchKernelEx(&config, function, parameters, nullptr);
}

std::string set_text(const std::set<uint32_t>& set) {
    std::string text;
    for (uint32_t each : set) text += (text.empty() ? "" : ", ") + std::to_string(each);
    return "[" + text + "]";
}

std::set<uint32_t> places(CUstream stream, unsigned grid, CUlaunchAttribute* attribute = nullptr,
                          CUresult* status = nullptr) {
    CHECK(cuMemsetD8(out, 0, kBlocks * 4));
    CHECK(cuCtxSynchronize());
    CUresult launched = launch(stream, where, grid, 1024, 20'000, attribute);
    if (status)
        *status = launched;
    else
        CHECK(launched);
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH(host.data(), out, kBlocks * 4));
    std::set<uint32_t> found;
    for (unsigned i = 0; i < grid; ++i) found.insert(host[i] - 1);
    return found;
}

struct Green {
    CUgreenCtx context = nullptr;
    CUstream stream = nullptr;
    unsigned sms = 0;
};

Green make_green(CUdevResource resource, int priority = 0) {
    Green green;
    CUdevResourceDesc description;
    CHECK(cuDevResourceGenerateDesc(&description, &resource, 1));
    const double begin = now_us();
    CHECK(cuGreenCtxCreate(&green.context, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
    const double made = now_us();
    CHECK(cuGreenCtxStreamCreate(&green.stream, green.context, CU_STREAM_NON_BLOCKING, priority));
    const double end = now_us();
    green.sms = resource.sm.smCount;
    std::printf("{\"probe\": \"create\", \"sms\": %u, \"context_us\": %.1f, \"stream_us\": %.1f}\n",
                green.sms, made - begin, end - made);
    return green;
}

// A part of so many, and the rest.
bool split(unsigned wanted, unsigned flags, CUdevResource* part, CUdevResource* rest) {
    CUdevResource all;
    CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    unsigned groups = 1;
    CUresult status = cuDevSmResourceSplitByCount(part, &groups, &all, rest, flags, wanted);
    std::printf(
        "{\"probe\": \"split\", \"wanted\": %u, \"flags\": %u, \"status\": %d, \"groups\": %u, \"part\": %u, "
        "\"rest\": %u}\n",
        wanted, flags, status, groups, status ? 0 : part->sm.smCount,
        status                                  ? 0
        : rest->type == CU_DEV_RESOURCE_TYPE_SM ? rest->sm.smCount
                                                : 0);
    return status == CUDA_SUCCESS;
}

void report(const char* what, CUresult status) {
    std::printf("{\"probe\": \"can\", \"what\": \"%s\", \"status\": %d}\n", what, status);
}

void abilities(const Green& green) {
    CUstream stream = green.stream, plain;
    CHECK(cuStreamCreateWithPriority(&plain, CU_STREAM_NON_BLOCKING, 0));
    void* pinned = nullptr;
    CHECK(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    CUdeviceptr word;
    CHECK(cuMemHostGetDevicePointer(&word, pinned, 0));
    CUevent event, timed;
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&timed, CU_EVENT_DEFAULT));
    report("launch of a kernel loaded in the primary context", launch(stream, where, 8, 32, 0));
    report("memset", cuMemsetD8Async(out, 1, 4096, stream));
    report("copy", cuMemcpyDtoHAsync(host.data(), out, 4096, stream));
    report("write value", cuStreamWriteValue64(stream, word, 7, 0));
    CUstreamBatchMemOpParams operation{};
    operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operation.writeValue.address = out;
    report("batch of memory operations", cuStreamBatchMemOp(stream, 1, &operation, 0));
    report("event of the primary context recorded", cuEventRecord(event, stream));
    report("timed event recorded", cuEventRecord(timed, stream));
    report("plain stream waits for it", cuStreamWaitEvent(plain, event, 0));
    report("event recorded on plain stream", cuEventRecord(event, plain));
    report("green stream waits for it", cuStreamWaitEvent(stream, event, 0));
    report("host function", cuLaunchHostFunc(stream, [](void*) {}, nullptr));
    report("query", cuStreamQuery(stream));
    report("synchronize", cuStreamSynchronize(stream));
    CUdeviceptr pooled = 0;
    report("allocation in the stream's order", cuMemAllocAsync(&pooled, 1 << 20, stream));
    report("freed in the stream's order", cuMemFreeAsync(pooled, stream));
    report("copy of pageable memory", cuMemcpyHtoDAsync(out, host.data(), 4096, stream));
    CUresult from_threads = CUDA_SUCCESS;
    CUstream second;
    CHECK(cuGreenCtxStreamCreate(&second, green.context, CU_STREAM_NON_BLOCKING, 0));
    std::vector<std::thread> threads;
    for (CUstream each : {stream, second, plain, stream}) {
        threads.emplace_back([&from_threads, each] {
            cuCtxSetCurrent(primary);
            for (int i = 0; i < 2000; ++i) {
                if (CUresult status = launch(each, empty, 8, 32, 0)) from_threads = status;
                if (i % 100 == 0 && cuStreamSynchronize(each)) from_threads = CUDA_ERROR_UNKNOWN;
            }
        });
    }
    for (std::thread& each : threads) each.join();
    report("launches of four threads", from_threads);
    CHECK(cuStreamDestroy(second));
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, attribute.value.cooperative = 1;
    for (unsigned grid : {green.sms, 2 * green.sms, 2 * green.sms + 1, 2u * kSms, 2u * kSms + 1}) {
        CUresult status = launch(stream, where, grid, 1024, 1000, &attribute);
        std::printf(
            "{\"probe\": \"cooperative\", \"sms\": %u, \"blocks\": %u, \"status\": %d, \"synchronize\": "
            "%d}\n",
            green.sms, grid, status, cuStreamSynchronize(stream));
    }
    for (unsigned width : {2u, 8u}) {
        attribute = {};
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim.x = width, attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
        CUresult status = CUDA_SUCCESS;
        const auto found = places(stream, 512, &attribute, &status);
        std::printf("{\"probe\": \"cluster\", \"width\": %u, \"status\": %d, \"sms\": %zu}\n", width, status,
                    found.size());
    }
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    report("begin capture", cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    report("captured launch", launch(stream, where, 512, 1024, 20'000));
    report("end capture", cuStreamEndCapture(stream, &graph));
    report("instantiate", cuGraphInstantiate(&exec, graph, 0));
    for (CUstream each : {stream, plain}) {
        CHECK(cuMemsetD8(out, 0, kBlocks * 4));
        CHECK(cuGraphLaunch(exec, each));
        CHECK(cuStreamSynchronize(each));
        CHECK(cuMemcpyDtoH(host.data(), out, 512 * 4));
        std::printf(
            "{\"probe\": \"graph captured on a green stream\", \"launched_on\": \"%s\", \"sms\": %zu}\n",
            each == stream ? "green" : "plain", std::set<uint32_t>(host.begin(), host.begin() + 512).size());
    }
    CUgraph other = nullptr;
    CHECK(cuStreamBeginCapture(plain, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(launch(plain, where, 512, 1024, 20'000));
    CHECK(cuStreamEndCapture(plain, &other));
    CHECK(cuGraphInstantiate(&exec, other, 0));
    for (CUstream each : {stream, plain}) {
        CHECK(cuMemsetD8(out, 0, kBlocks * 4));
        CHECK(cuGraphLaunch(exec, each));
        CHECK(cuStreamSynchronize(each));
        CHECK(cuMemcpyDtoH(host.data(), out, 512 * 4));
        std::printf(
            "{\"probe\": \"graph captured on a plain stream\", \"launched_on\": \"%s\", \"sms\": %zu}\n",
            each == stream ? "green" : "plain", std::set<uint32_t>(host.begin(), host.begin() + 512).size());
    }
    // Does a green stream that waits hold up others?
    std::atomic<uint64_t>& flag = *static_cast<std::atomic<uint64_t>*>(pinned);
    flag = 0;
    CHECK(cuStreamWaitValue64(stream, word, 9, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(launch(plain, empty, 1, 1, 0));
    const double begin = now_us();
    while (cuStreamQuery(plain) != CUDA_SUCCESS && now_us() - begin < 200'000) {
    }
    std::printf("{\"probe\": \"plain stream beside a green one that waits\", \"us\": %.1f}\n",
                now_us() - begin);
    flag = 9;
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamSynchronize(plain));
    cuStreamDestroy(plain);
}

// The program's cost of a launch, and the time of one with the wait for its end.
void costs(const Green& green) {
    CUstream plain;
    CHECK(cuStreamCreateWithPriority(&plain, CU_STREAM_NON_BLOCKING, 0));
    CUevent there, back;
    CHECK(cuEventCreate(&there, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    void* pinned = nullptr;
    CHECK(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    const CUdeviceptr word = reinterpret_cast<CUdeviceptr>(pinned);
    const auto home = [&] {
        CHECK(cuEventRecord(there, plain));
        CHECK(cuStreamWaitEvent(green.stream, there, 0));
        CHECK(launch(green.stream, empty, 1, 32, 0));
        CHECK(cuEventRecord(back, green.stream));
        CHECK(cuStreamWaitEvent(plain, back, 0));
    };
    struct Way {
        const char* name;
        std::function<void()> call;
        CUstream end;
    } const ways[] = {
        {"plain", [&] { CHECK(launch(plain, empty, 1, 32, 0)); }, plain},
        {"green", [&] { CHECK(launch(green.stream, empty, 1, 32, 0)); }, green.stream},
        {"plain, to green and back", home, plain},
        {"plain, a word behind it",
         [&] {
             CHECK(launch(plain, empty, 1, 32, 0));
             CHECK(cuStreamWriteValue64(plain, word, 1, 0));
         },
         plain},
        {"plain, an event behind it",
         [&] {
             CHECK(launch(plain, empty, 1, 32, 0));
             CHECK(cuEventRecord(back, plain));
         },
         plain},
    };
    for (const Way& way : ways) {
        std::vector<double> issue, both, row;
        for (int i = 0; i < 300; ++i) {
            const double begin = now_us();
            way.call();
            const double issued = now_us();
            CHECK(cuStreamSynchronize(way.end));
            both.push_back(now_us() - begin);
            issue.push_back(issued - begin);
        }
        for (int i = 0; i < 20; ++i) {
            const double begin = now_us();
            for (int j = 0; j < 200; ++j) way.call();
            CHECK(cuStreamSynchronize(way.end));
            row.push_back((now_us() - begin) / 200);
        }
        std::printf(
            "{\"probe\": \"cost\", \"way\": \"%s\", \"issue_us\": %.2f, \"with_synchronize_us\": %.2f, "
            "\"each_of_200_us\": %.2f}\n",
            way.name, median(issue), median(both), median(row));
    }
    cuStreamDestroy(plain);
}

// A small kernel (so many blocks of 256 threads, 20 us each) behind one of 30 waves of 200 us blocks.
void latency(const char* name, CUstream large, unsigned large_blocks, CUstream small, unsigned small_blocks,
             CUevent begun) {
    std::vector<double> times;
    double large_ms = 0;
    for (int i = 0; i < 12; ++i) {
        const double begin = now_us();
        CHECK(cuEventRecord(begun, large));
        CHECK(launch(large, where, large_blocks, 1024, 200'000));
        usleep(700);
        for (int j = 0; j < 3; ++j) {
            const double start = now_us();
            CHECK(launch(small, where, small_blocks, 256, 20'000));
            CHECK(cuStreamSynchronize(small));
            times.push_back(now_us() - start);
        }
        CHECK(cuStreamSynchronize(large));
        large_ms += (now_us() - begin) / 1000 / 12;
    }
    std::sort(times.begin(), times.end());
    std::printf(
        "{\"probe\": \"latency\", \"way\": \"%s\", \"small_blocks\": %u, \"p50_us\": %.1f, \"p90_us\": %.1f, "
        "\"max_us\": %.1f, \"large_ms\": %.2f}\n",
        name, small_blocks, times[times.size() / 2], times[times.size() * 9 / 10], times.back(), large_ms);
}

// Calls beside a kernel that fills the device for 100 ms: which of them wait for its end? And a set of
// several groups.
void at_work(CUstream large) {
    CUdevResource all, rest, groups[16];
    unsigned count = 16;
    CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    CHECK(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, 8));
    std::printf("{\"probe\": \"groups\", \"of\": 8, \"count\": %u, \"rest\": %u}\n", count,
                rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0);
    for (unsigned wide : {1u, 4u, 5u}) {
        CHECK(launch(large, where, 2 * kSms, 1024, 100'000'000));
        usleep(1000);
        CUdevResourceDesc description;
        Green green;
        const double begin = now_us();
        const CUresult described = cuDevResourceGenerateDesc(&description, groups + 2, wide);
        const CUresult made =
            cuGreenCtxCreate(&green.context, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
        const double created = now_us();
        CHECK(cuGreenCtxStreamCreate(&green.stream, green.context, CU_STREAM_NON_BLOCKING, 0));
        const double streamed = now_us();
        CHECK(cuStreamSynchronize(large));
        const auto sms = places(green.stream, 1024);
        std::printf(
            "{\"probe\": \"row of groups, made beside a kernel of 100 ms\", \"groups\": %u, \"described\": "
            "%d, \"made\": %d, "
            "\"context_us\": %.1f, \"stream_us\": %.1f, \"count\": %zu, \"sms\": %s}\n",
            wide, described, made, created - begin, streamed - created, sms.size(), set_text(sms).c_str());
        CHECK(launch(large, where, 2 * kSms, 1024, 100'000'000));
        usleep(1000);
        const double before = now_us();
        CHECK(cuStreamDestroy(green.stream));
        const double destroyed = now_us();
        CHECK(cuGreenCtxDestroy(green.context));
        const double gone = now_us();
        CHECK(cuStreamSynchronize(large));
        std::printf("{\"probe\": \"given back beside it\", \"stream_us\": %.1f, \"context_us\": %.1f}\n",
                    destroyed - before, gone - destroyed);
    }
}

}  // namespace

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&primary, device));
    CHECK(cuCtxSetCurrent(primary));
    CUmodule module;
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&where, module, "where"));
    CHECK(cuModuleGetFunction(&empty, module, "empty"));
    CHECK(cuMemAlloc(&out, kBlocks * 4));
    CUdevResource all;
    CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    std::printf("{\"probe\": \"device\", \"sms\": %u, \"least\": %u, \"alignment\": %u}\n", all.sm.smCount,
                all.sm.minSmPartitionSize, all.sm.smCoscheduledAlignment);

    CUstream plain, urgent;
    int least = 0, greatest = 0;
    CHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(cuStreamCreateWithPriority(&plain, CU_STREAM_NON_BLOCKING, least));
    CHECK(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, greatest));
    std::printf("{\"probe\": \"places\", \"of\": \"primary\", \"sms\": %s}\n",
                set_text(places(plain, 2 * kSms)).c_str());
    size_t free_before = 0, free_after = 0, total = 0;
    CHECK(cuMemGetInfo(&free_before, &total));
    std::vector<Green> parts, rests;
    for (unsigned wanted : {1u, 8u, 12u, 20u, 32u, 66u, 100u, 120u, 128u}) {
        CUdevResource part{}, rest{};
        if (!split(wanted, 0, &part, &rest)) continue;
        if (wanted != 8 && wanted != 32 && wanted != 100) continue;
        parts.push_back(make_green(part));
        const auto sms = places(parts.back().stream, 1024);
        std::printf(
            "{\"probe\": \"places\", \"of\": \"part\", \"wanted\": %u, \"count\": %zu, \"sms\": %s}\n",
            wanted, sms.size(), set_text(sms).c_str());
        if (rest.type != CU_DEV_RESOURCE_TYPE_SM || rest.sm.smCount == 0) continue;
        rests.push_back(make_green(rest));
        const auto others = places(rests.back().stream, 1024);
        std::printf(
            "{\"probe\": \"places\", \"of\": \"rest\", \"wanted\": %u, \"count\": %zu, \"sms\": %s}\n",
            wanted, others.size(), set_text(others).c_str());
    }
    for (unsigned wanted : {1u, 2u, 6u, 30u}) {
        CUdevResource part{}, rest{};
        split(wanted, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, &part, &rest);
    }
    CHECK(cuMemGetInfo(&free_after, &total));
    std::printf("{\"probe\": \"memory\", \"green_contexts\": %zu, \"bytes\": %ld}\n",
                parts.size() + rests.size(), long(free_before) - long(free_after));
    // A second context of the same size: the same SMs, or others?
    {
        CUdevResource part{}, rest{};
        split(32, 0, &part, &rest);
        Green again = make_green(part);
        std::printf("{\"probe\": \"places\", \"of\": \"the same part again\", \"sms\": %s}\n",
                    set_text(places(again.stream, 1024)).c_str());
        cuStreamDestroy(again.stream);
        cuGreenCtxDestroy(again.context);
    }
    if (parts.size() < 2 || rests.size() < 2) return 1;
    abilities(parts[1]);
    costs(rests[1]);

    CUevent begun;
    CHECK(cuEventCreate(&begun, CU_EVENT_DISABLE_TIMING));
    CUstream rest_low, part_high;
    CHECK(cuGreenCtxStreamCreate(&rest_low, rests[1].context, CU_STREAM_NON_BLOCKING, least));
    CHECK(cuGreenCtxStreamCreate(&part_high, parts[1].context, CU_STREAM_NON_BLOCKING, greatest));
    const unsigned blocks = 2 * kSms * 20;  // 20 waves, 4 ms, on all
    for (unsigned small : {1u, 32u, 132u, 528u}) {
        CUstream equal;
        CHECK(cuStreamCreateWithPriority(&equal, CU_STREAM_NON_BLOCKING, least));
        latency("both plain, two streams", plain, blocks, equal, small, begun);
        latency("both plain, small with priority", plain, blocks, urgent, small, begun);
        latency("large on 100 of 132, small plain", rest_low, blocks, equal, small, begun);
        latency("large on 100 of 132, small plain with priority", rest_low, blocks, urgent, small, begun);
        latency("large on 100, small on the other 32", rest_low, blocks, part_high, small, begun);
        cuStreamDestroy(equal);
    }
    at_work(plain);
    std::puts("{\"probe\": \"end\"}");
}
