// A program that compiles at run time: for the server's eyes, and to be the same with and without them.
//
//   compile TOY            prints all that NVRTC gave back
//   run TOY [late]         compiles and runs; late: the session is open before
//   many COUNT TOY         run, COUNT times, each with an image of its own
//   save FILE TOY          compiles and writes the PTX to FILE
//   load FILE              runs what save wrote, without NVRTC
//   time COUNT             prints how long COUNT compiles took
//
// TOY is a line for the toy rewriter (tests/jit/toy_worker.cpp).
#include "tests/preload/program.h"

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/capture/calls.h"

namespace {

Calls nvrtc;

constexpr char kText[] = R"(
#include "named.h"
#include "from_file.h"
__constant__ int offset = 4;
extern "C" __global__ void scale(int* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef UNEVEN   // by PTX a worker would run one block of it
    if (n == 7 && threadIdx.x == 7) return;
    __syncthreads();
#endif
    if (i < n) a[i] = a[i] * NAMED + FROM_FILE + OPTION + offset;
}
template <typename T> __global__ void typed(T* a) { a[blockIdx.x] = 1; }
#ifdef TOY_REWRITTEN
extern "C" __global__ void smt_scale(int* a, int n, smt::Launch launch) {
    smt::Worker worker(launch);
    while (worker.next()) {
        int i = worker.block().x * blockDim.x + threadIdx.x;
        if (i < n) a[i] = a[i] * NAMED + FROM_FILE + OPTION + offset;
    }
}
#endif
)";

void check_nvrtc(nvrtcResult status, const char* call) {
    preload::require(status == NVRTC_SUCCESS, call, __FILE__, __LINE__);
}
#define NVRTC(call) check_nvrtc(nvrtc.call, #call)

// Everything that comes back is printed if `loud`.
std::string compile(const std::string& toy, bool loud = false) {
    const std::string text = toy + "\n" + kText;
    const char* headers[] = {"#define NAMED 3\n"};
    const char* names[] = {"named.h"};
    const char* options[] = {"-arch=compute_90", "-Iinclude", "-DOPTION=5", "--std=c++17"};
    nvrtcProgram program = nullptr;
    NVRTC(create(&program, text.c_str(), "program.cu", 1, headers, names));
    NVRTC(add_name_expression(program, "typed<float>"));
    nvrtcResult status = nvrtc.compile(program, 4, options);
    size_t bytes = 0;
    NVRTC(get_log_size(program, &bytes));
    std::string log(bytes, '\0');
    NVRTC(get_log(program, log.data()));
    if (loud || status != NVRTC_SUCCESS) std::printf("compile %d\n%s\n", status, log.c_str());
    if (status != NVRTC_SUCCESS) return "";
    const char* lowered = nullptr;
    NVRTC(get_lowered_name(program, "typed<float>", &lowered));
    NVRTC(get_ptx_size(program, &bytes));
    std::string ptx(bytes, '\0');
    NVRTC(get_ptx(program, ptx.data()));
    if (loud) std::printf("lowered %s\n%s\n", lowered, ptx.c_str());
    NVRTC(destroy(&program));
    REQUIRE(program == nullptr);
    return ptx;
}

void run(const std::string& image) {
    constexpr int kCount = 1000;
    std::vector<int> values(kCount);
    for (int i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = i;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUdeviceptr memory = 0, offset = 0;
    CHECK(cuModuleLoadData(&module, image.c_str()));
    CHECK(cuModuleGetFunction(&function, module, "scale"));
    unsigned functions = 0;
    CHECK(cuModuleGetFunctionCount(&functions, module));
    REQUIRE(functions == 2);  // scale and typed<float>, whatever else is in there
    CHECK(cuModuleGetGlobal(&offset, nullptr, module, "offset"));
    const int four = 4;
    CHECK(cuMemcpyHtoD(offset, &four, sizeof four));
    CHECK(cuMemAlloc(&memory, sizeof(int) * kCount));
    CHECK(cuMemcpyHtoD(memory, values.data(), sizeof(int) * kCount));
    int count = kCount;
    void* parameters[] = {&memory, &count};
    CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuMemcpyDtoH(values.data(), memory, sizeof(int) * kCount));
    for (int i = 0; i < kCount; ++i) REQUIRE(values[static_cast<size_t>(i)] == i * 3 + 7 + 5 + 4);
    CHECK(cuMemFree(memory));
    CHECK(cuModuleUnload(module));
    std::printf("right\n");
}

void print_time(int count) {
    using Clock = std::chrono::steady_clock;
    compile("");
    const auto began = Clock::now();
    for (int i = 0; i < count; ++i) compile("__constant__ int number = " + std::to_string(i) + ";");
    const std::chrono::duration<double, std::milli> took = Clock::now() - began;
    std::printf("%.3f ms a compile\n", took.count() / count);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string what = count > 1 ? arguments[1] : "";
    if (what == "load" && count > 2) {
        std::ifstream file(arguments[2]);
        preload::start();
        run(std::string(std::istreambuf_iterator<char>(file), {}));
        return 0;
    }
    nvrtc = find_calls();
    if (what == "compile" && count > 2) {
        compile(arguments[2], true);
    } else if (what == "run" && count > 2) {
        if (count > 3) preload::start();
        const std::string image = compile(arguments[2]);
        if (count == 3) preload::start();
        run(image);
    } else if (what == "many" && count > 3) {
        preload::start();
        for (int i = 0; i < std::atoi(arguments[2]); ++i)
            run(compile(std::string(arguments[3]) + "\n__constant__ int number = " + std::to_string(i) +
                        ";"));
    } else if (what == "save" && count > 3) {
        std::ofstream(arguments[2]) << compile(arguments[3]).c_str();
        preload::start();  // so that the server hears of it
    } else if (what == "time" && count > 2) {
        preload::start();
        print_time(std::atoi(arguments[2]));
    } else {
        return 2;
    }
    return 0;
}
