// Does CUPTI count and time on this machine, in the way that the server asks it (profiler/collect/)?
//
//     cupti [FILE]    FILE: the raw activity buffers, for a test to replay
//
// A line of JSON for each question.
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "profiler/collect/cupti/activity.h"
#include "profiler/collect/cupti/range.h"

namespace collect = smt::profiler::collect;

namespace {

constexpr char kPtx[] = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 data, .param .u32 rounds) {
    .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .pred %p;
    ld.param.u64 %d0, [data];
    ld.param.u32 %r5, [rounds];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;
    mul.wide.u32 %d1, %r3, 4;
    add.u64 %d2, %d0, %d1;
    ld.global.f32 %f0, [%d2];
again:
    fma.rn.f32 %f0, %f0, 0f3F800001, 0f3F000000;
    sub.u32 %r5, %r5, 1;
    setp.ne.u32 %p, %r5, 0;
    @%p bra again;
    st.global.f32 [%d2], %f0;
    ret;
})";

constexpr unsigned kBlocks = 65536, kThreads = 256, kLaunches = 5;

void check(CUresult status, const char* what) {
    if (status == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(status));
    std::exit(1);
}

// In front of CUPTI's: the buffers go to a file as well.
std::FILE* file = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;

void CUPTIAPI keep(CUcontext context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid) {
    if (file) std::fwrite(&valid, sizeof valid, 1, file), std::fwrite(buffer, 1, valid, file);
    complete(context, stream, buffer, bytes, valid);
}
CUptiResult CUPTIAPI register_ours(CUpti_BuffersCallbackRequestFunc request,
                                   CUpti_BuffersCallbackCompleteFunc theirs) {
    complete = theirs;
    return register_callbacks(request, keep);
}

struct TimedKernel {
    CUfunction function = nullptr;
    CUdeviceptr data = 0;
    void launch(unsigned rounds) {
        void* parameters[] = {&data, &rounds};
        check(cuLaunchKernel(function, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters, nullptr),
              "cuLaunchKernel");
    }
};

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void ask_times(const collect::Cupti& cupti, TimedKernel& kernel) {
    collect::Cupti ours = cupti;
    register_callbacks = ours.cuptiActivityRegisterCallbacks;
    ours.cuptiActivityRegisterCallbacks = register_ours;
    collect::ActivityTimes times(ours);
    const std::string problem = times.open();
    if (!problem.empty()) {
        std::printf("{\"times\": null, \"problem\": \"%s\"}\n", problem.c_str());
        return;
    }
    for (unsigned i = 1; i <= kLaunches; ++i) {
        times.before(100 + i);
        kernel.launch(64 * i);
        times.after();
    }
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    times.collect([](const collect::KernelTime& time) {
        std::printf("{\"times\": %llu, \"ns\": %llu}\n", static_cast<unsigned long long>(time.launch),
                    static_cast<unsigned long long>(time.ended_ns - time.began_ns));
    });
}

void ask_counters(const collect::Cupti& cupti, CUcontext context, CUdevice device, TimedKernel& kernel) {
    const double begin = seconds();
    collect::RangeCounters counters(cupti, context, device);
    if (!counters.open()) {
        std::printf("{\"counters\": null, \"final\": %d, \"problem\": \"%s\"}\n", counters.final(),
                    counters.problem().c_str());
        return;
    }
    std::printf("{\"counters\": \"open\", \"passes\": %zu, \"seconds\": %.3f}\n", counters.passes(),
                seconds() - begin);
    for (unsigned i = 1; i <= 3; ++i) {
        const double start = seconds();
        if (!counters.before()) break;
        kernel.launch(64);
        const std::optional<collect::Sample> sample = counters.after();
        if (!sample) break;
        std::printf("{\"counted\": %u, \"seconds\": %.4f", i, seconds() - start);
        for (size_t each = 0; each < collect::kMetrics; ++each)
            std::printf(", \"%s\": %.6g", collect::kMetricNames[each], (*sample)[each]);
        std::printf("}\n");
    }
    if (!counters.problem().empty())
        std::printf("{\"counters\": null, \"problem\": \"%s\"}\n", counters.problem().c_str());
}

}  // namespace

int main(int count, char** arguments) {
    if (count > 1) file = std::fopen(arguments[1], "wb");
    std::string problem;
    const collect::Cupti* cupti = collect::open_cupti(&problem);
    if (!cupti) {
        std::printf("{\"cupti\": null, \"problem\": \"%s\"}\n", problem.c_str());
        return 1;
    }
    uint32_t version = 0;
    cupti->cuptiGetVersion(&version);
    std::printf("{\"cupti\": \"%s\", \"version\": %u}\n", cupti->path.c_str(), version);

    CUdevice device = 0;
    CUcontext context = nullptr;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    CUmodule module = nullptr;
    TimedKernel kernel;
    check(cuModuleLoadData(&module, kPtx), "cuModuleLoadData");
    check(cuModuleGetFunction(&kernel.function, module, "scale"), "cuModuleGetFunction");
    check(cuMemAlloc(&kernel.data, size_t{kBlocks} * kThreads * 4), "cuMemAlloc");
    check(cuMemsetD32(kernel.data, 0, size_t{kBlocks} * kThreads), "cuMemsetD32");

    ask_counters(*cupti, context, device, kernel);
    ask_times(*cupti, kernel);
    if (file) std::fclose(file);
    return 0;
}
