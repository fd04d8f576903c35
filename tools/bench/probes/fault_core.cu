// What does the driver's GPU core dump cost, and what does it say of a fault? No smt in it: run it natively.
//
//   fault_core cost   [FILE]         launches a second and time of a long kernel; FILE: with core dumps
//                                    enabled
//   fault_core KIND   [FILE]         KIND: illegal, load, misaligned, trap, assert. Other streams, three or
//                                    $PROBE_OTHERS, work meanwhile, with kernels of $PROBE_ROUNDS rounds.
//                                    One line: the status, and how long after the launch it was there
//
// The dump has no memory in it (the lightweight flags), and the process is not aborted.
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern "C" __global__ void healthy(uint64_t* out, int rounds) {
    uint64_t x = threadIdx.x + 1;
    for (int i = 0; i < rounds; ++i) x = x * 6364136223846793005ull + 1442695040888963407ull;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void tiny() {}
extern "C" __global__ void faulty_illegal(int* out) {
    if (threadIdx.x == 3) out[1ull << 44] = 1;
}
extern "C" __global__ void faulty_load(int* out) { out[threadIdx.x] = out[(1ull << 44) + threadIdx.x] + 1; }
extern "C" __global__ void faulty_misaligned(char* out) { *reinterpret_cast<int*>(out + 1) = 1; }
extern "C" __global__ void faulty_trap() { __trap(); }
extern "C" __global__ void faulty_assert(int zero) { assert(zero); }

namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void enable(const char* file) {
    bool yes = true;
    size_t size = sizeof yes;
    std::printf("enable %d", cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, &size));
    unsigned flags = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;
    size = sizeof flags;
    std::printf(" flags %d", cuCoredumpSetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
    size = std::strlen(file) + 1;
    std::printf(" file %d", cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, const_cast<char*>(file), &size));
    std::printf("\n");
}

void cost() {
    uint64_t* out;
    cudaMalloc(&out, 132 * 8 * 256 * 8);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int round = 0; round < 5; ++round) {
        double start = now();
        for (int i = 0; i < 20000; ++i) tiny<<<1, 32, 0, stream>>>();
        const double issued = now() - start;
        cudaStreamSynchronize(stream);
        const double done = now() - start;
        start = now();
        for (int i = 0; i < 2000; ++i) {
            tiny<<<1, 32, 0, stream>>>();
            cudaStreamSynchronize(stream);
        }
        const double each = (now() - start) / 2000;
        start = now();
        healthy<<<132 * 8, 256, 0, stream>>>(out, 200000);
        cudaStreamSynchronize(stream);
        const double longer = now() - start;
        std::printf("issues %.3f us, through %.3f us  launch+sync %.3f us  long %.3f ms\n",
                    issued / 20000 * 1e6, done / 20000 * 1e6, each * 1e6, longer * 1e3);
    }
}

// What the dump may know a kernel by.
void tell(const char* name, const void* kernel) {
    cudaFunction_t function = nullptr;
    CUmodule module = nullptr;
    cudaGetFuncBySymbol(&function, kernel);
    cuFuncGetModule(&module, reinterpret_cast<CUfunction>(function));
    std::printf("%s: function %p module %p\n", name, static_cast<void*>(function),
                static_cast<void*>(module));
}

void fault(const std::string& kind, const char* file) {
    tell("healthy", reinterpret_cast<const void*>(healthy));
    tell("illegal", reinterpret_cast<const void*>(faulty_illegal));
    tell("misaligned", reinterpret_cast<const void*>(faulty_misaligned));
    tell("trap", reinterpret_cast<const void*>(faulty_trap));
    tell("assert", reinterpret_cast<const void*>(faulty_assert));
    uint64_t* out;
    cudaMalloc(&out, 132 * 8 * 256 * 8);
    std::vector<std::thread> others;
    const char *many = std::getenv("PROBE_OTHERS"), *long_ones = std::getenv("PROBE_ROUNDS");
    const int rounds = long_ones ? std::atoi(long_ones) : 2000000;
    const int launches = static_cast<int>(12 * 2000000ll / rounds);
    for (int i = 0; i < (many ? std::atoi(many) : 3); ++i)
        others.emplace_back([=] {
            cudaStream_t stream;
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            std::printf("tid %ld healthy\n", syscall(SYS_gettid));
            for (int j = 0; j < launches; ++j) {
                healthy<<<40, 256, 0, stream>>>(out, rounds + i);
                if (cudaError_t status = cudaStreamSynchronize(stream)) {
                    std::printf("healthy %d: %s after %d launches\n", i, cudaGetErrorName(status), j);
                    return;
                }
            }
            std::printf("healthy %d: no error\n", i);
        });
    usleep(50000);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::printf("tid %ld faulty\n", syscall(SYS_gettid));
    const double start = now();
    int ends[2];
    if (pipe(ends) == 0) dup2(ends[1], STDERR_FILENO);
    std::thread([=] {  // when does the driver say that it begins?
        char text[200];
        while (read(ends[0], text, sizeof text) > 0)
            std::printf("%s: first word on stderr after %.1f ms\n", kind.c_str(), (now() - start) * 1e3);
    })
        .detach();
    if (kind == "illegal") faulty_illegal<<<7, 64, 0, stream>>>(reinterpret_cast<int*>(out));
    if (kind == "misaligned") faulty_misaligned<<<7, 64, 0, stream>>>(reinterpret_cast<char*>(out));
    if (kind == "trap") faulty_trap<<<7, 64, 0, stream>>>();
    if (kind == "assert") faulty_assert<<<7, 64, 0, stream>>>(0);
    if (kind == "load") faulty_load<<<7, 64, 0, stream>>>(reinterpret_cast<int*>(out));
    const auto said = [&](const char* call, cudaError_t status) {
        struct stat dump{};
        const long bytes = stat(file, &dump) == 0 ? static_cast<long>(dump.st_size) : -1;  // -1: no dump yet
        std::printf("%s: %s %s after %.1f ms, dump %ld\n", kind.c_str(), call, cudaGetErrorName(status),
                    (now() - start) * 1e3, bytes);
        return status;
    };
    if (std::getenv("PROBE_FENCE")) tiny<<<1, 32, 0, stream>>>();
    said("first wait", cudaStreamSynchronize(stream));
    said("second wait", cudaStreamSynchronize(stream));
    int word = 0;
    if (std::getenv("PROBE_FENCE")) {
        tiny<<<1, 32, 0, stream>>>();
        said("wait for a kernel behind", cudaStreamSynchronize(stream));
    }
    said("copy", cudaMemcpyAsync(&word, out, sizeof word, cudaMemcpyDeviceToHost, stream));
    said("third wait", cudaStreamSynchronize(stream));
    while (cudaStreamQuery(stream) == cudaSuccess && now() - start < 3) usleep(1000);
    said("query", cudaStreamQuery(stream));
    for (std::thread& other : others) other.join();
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return 2;
    cuInit(0);
    if (count > 2) enable(arguments[2]);
    const double start = now();
    cudaFree(nullptr);
    std::printf("context %.1f ms\n", (now() - start) * 1e3);
    if (std::string(arguments[1]) == "cost")
        cost();
    else
        fault(arguments[1], count > 2 ? arguments[2] : "");
    if (count > 2) {
        struct stat file{};
        if (stat(arguments[2], &file) == 0) std::printf("dump %ld bytes\n", static_cast<long>(file.st_size));
    }
    std::fflush(stdout);
    _exit(0);
}
