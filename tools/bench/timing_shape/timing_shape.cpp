// bench_timing_shape: the time of four kernels against the blocks that are resident on a multiprocessor, from
// one to the most. Dynamic shared memory keeps the others out. The same program runs on the simulated device
// (under smt run) and on a GPU (by itself); timing_shape.py compares what they print.
//
//   bench_timing_shape [--rounds-scale N] [--samples N]
//
// Out: a JSON object a line for each kernel and number of blocks, with every sample in microseconds.
#include <cuda.h>
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kBlocksEach = 48;        // of a multiprocessor: a multiple of 1, 2, 3, 4, 6, 8, 12 and 16
constexpr size_t kSharedEach = 228u << 10;  // a multiprocessor's
constexpr size_t kReserved = 1u << 10;      // of each block
constexpr size_t kUnit = 128;

struct BenchKernel {
    const char* name;
    unsigned rounds;
};
constexpr BenchKernel kKernels[] = {{"compute", 12}, {"bandwidth", 24}, {"latency", 24}, {"mixed", 12}};

void* driver = nullptr;

// By the name the driver exports, which cuda.h's macros give.
#define NAME_OF(function) #function
#define EXPORTED(function) NAME_OF(function)
#define CALL(function, ...)                                                                            \
    call(reinterpret_cast<decltype(&function)>(dlsym(driver, EXPORTED(function))), EXPORTED(function), \
         __VA_ARGS__)

template <typename Function, typename... Arguments>
void call(Function* function, const char* name, Arguments... arguments) {
    const CUresult status = function ? function(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
    if (status == CUDA_SUCCESS) return;
    std::fprintf(stderr, "bench_timing_shape: %s returns error %d\n", name, static_cast<int>(status));
    std::exit(1);
}

std::string beside_us(const char* name) {
    char path[PATH_MAX] = {};
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) std::exit(1);
    return std::string(dirname(path)) + "/" + name;
}

struct Bench {
    int multiprocessors = 0;
    unsigned scale = 1;
    int samples = 1;
    char device[256] = {};
    CUmodule module = nullptr;
    CUdeviceptr out = 0, in = 0;
    unsigned count = 0;  // words of `in`
    CUevent start = nullptr, end = nullptr;

    void open();
    void fill();
    float time(CUfunction function, const BenchKernel& kernel, size_t shared);
    void measure(const BenchKernel& kernel);
};

void Bench::open() {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) std::fprintf(stderr, "bench_timing_shape: %s\n", dlerror()), std::exit(1);
    CUdevice number = 0;
    CUcontext context = nullptr;
    CALL(cuInit, 0u);
    CALL(cuDeviceGet, &number, 0);
    CALL(cuDeviceGetName, device, static_cast<int>(sizeof device), number);
    CALL(cuDeviceGetAttribute, &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, number);
    CALL(cuDevicePrimaryCtxRetain, &context, number);
    CALL(cuCtxSetCurrent, context);
    std::ifstream file(beside_us("timing_shape.fatbin"), std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    if (image.empty())
        std::fprintf(stderr, "bench_timing_shape: timing_shape.fatbin is not beside it\n"), std::exit(1);
    CALL(cuModuleLoadData, &module, static_cast<const void*>(image.data()));
    CALL(cuEventCreate, &start, 0u);
    CALL(cuEventCreate, &end, 0u);
    CALL(cuMemAlloc, &out, sizeof(float));
}

// One array serves all: as floats it is nonsense, as words one long list in random order, a sector an
// element.
void Bench::fill() {
    const size_t blocks = static_cast<size_t>(multiprocessors) * kBlocksEach;
    const size_t bytes = blocks * kThreads * 16 * kKernels[1].rounds * scale;
    if (bytes / 4 > 1u << 30) {  // what the kernels' indices reach
        std::fprintf(stderr, "bench_timing_shape: --rounds-scale %u is too much for %d multiprocessors\n",
                     scale, multiprocessors);
        std::exit(2);
    }
    count = static_cast<unsigned>(bytes / 4);
    constexpr unsigned kSectorWords = 8;
    std::vector<unsigned> order(count / kSectorWords), list(count);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    for (size_t i = 0; i < order.size(); ++i) {
        const unsigned next = order[(i + 1) % order.size()] * kSectorWords;
        for (unsigned j = 0; j < kSectorWords; ++j) list[order[i] * kSectorWords + j] = next + j;
    }
    CALL(cuMemAlloc, &in, static_cast<size_t>(count) * 4);
    CALL(cuMemcpyHtoD, in, static_cast<const void*>(list.data()), static_cast<size_t>(count) * 4);
}

float Bench::time(CUfunction function, const BenchKernel& kernel, size_t shared) {
    unsigned rounds = kernel.rounds * scale;
    float nothing = -1e30f;
    void* parameters[] = {&out, &in, &count, &rounds, &nothing};
    const auto blocks = static_cast<unsigned>(multiprocessors) * kBlocksEach;
    CALL(cuEventRecord, start, nullptr);
    CALL(cuLaunchKernel, function, blocks, 1u, 1u, kThreads, 1u, 1u, static_cast<unsigned>(shared), nullptr,
         parameters, nullptr);
    CALL(cuEventRecord, end, nullptr);
    CALL(cuEventSynchronize, end);
    float milliseconds = 0;
    CALL(cuEventElapsedTime, &milliseconds, start, end);
    return milliseconds * 1000;
}

void Bench::measure(const BenchKernel& kernel) {
    CUfunction function = nullptr;
    int own_shared = 0;
    CALL(cuModuleGetFunction, &function, module, kernel.name);
    CALL(cuFuncGetAttribute, &own_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100);
    const size_t most = (227u << 10) - static_cast<size_t>(own_shared);
    CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
         static_cast<int>(most));
    for (int resident = 1; resident <= static_cast<int>(2048 / kThreads); ++resident) {
        const size_t share = kSharedEach / static_cast<size_t>(resident) / kUnit * kUnit - kReserved;
        const size_t shared = std::min(share - static_cast<size_t>(own_shared), most);
        int fit = 0;
        CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &fit, function, static_cast<int>(kThreads), shared);
        if (fit != resident) {
            std::fprintf(stderr, "bench_timing_shape: %s: %d blocks fit where %d should\n", kernel.name, fit,
                         resident);
            std::exit(1);
        }
        std::printf(
            "{\"device\":\"%s\",\"sms\":%d,\"kernel\":\"%s\",\"ctas_per_sm\":%d,\"rounds\":%u,\"us\":[",
            device, multiprocessors, kernel.name, resident, kernel.rounds * scale);
        if (samples > 1) time(function, kernel, shared);  // not counted: loads the code, wakes the clocks
        for (int i = 0; i < samples; ++i) std::printf("%s%.3f", i ? "," : "", time(function, kernel, shared));
        std::printf("]}\n");
        std::fflush(stdout);
    }
}

}  // namespace

int main(int count, char** arguments) {
    Bench bench;
    for (int i = 1; i + 1 < count; i += 2) {
        if (std::strcmp(arguments[i], "--rounds-scale") == 0)
            bench.scale = static_cast<unsigned>(std::atoi(arguments[i + 1]));
        if (std::strcmp(arguments[i], "--samples") == 0) bench.samples = std::atoi(arguments[i + 1]);
    }
    if (count % 2 == 0 || bench.scale == 0 || bench.samples <= 0) {
        std::fprintf(stderr, "usage: bench_timing_shape [--rounds-scale N] [--samples N]\n");
        return 2;
    }
    bench.open();
    bench.fill();
    for (const BenchKernel& kernel : kKernels) bench.measure(kernel);
}
