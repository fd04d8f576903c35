// misbehave WAY [lives]: one way to go wrong. It prints the error it gets, and that it stays.
//
//   lives   it says "lives" then, and reads a line before it ends
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr char kMalformed[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry broken()\n{\n  add.s32 %r1, ;\n}\n";
constexpr char kUnknown[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry strange()\n{\n  frobnicate.b32;\n  "
    "ret;\n}\n";
constexpr char kMissing[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.extern .global .u32 nowhere;\n.visible .entry "
    "lost()\n{\n  .reg .u32 %r;\n"
    "  ld.global.u32 %r, [nowhere];\n  ret;\n}\n";

int load(const char* image) {
    char log[512] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUmodule module = nullptr;
    const CUresult status = cuModuleLoadDataEx(&module, image, 2, options, values);
    std::printf("%s\n%s\n", preload::name_of(status), log);
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, 64));  // no harm was done
    return 0;
}

std::atomic<bool> begun{false};
std::atomic<int> called{0};
std::atomic<CUresult> told[2];

void hold(void*) { begun.wait(false); }

void tell(CUstream, CUresult status, void*) {
    told[called] = status;
    ++called;
    called.notify_one();
}

bool calls_back = true;

// Behind the kernel are two callbacks, which are called with the error, and a host function, which is not.
CUresult launch(const char* name, unsigned threads, void** parameters) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&function, module, name));
    if (calls_back) CHECK(cuLaunchHostFunc(nullptr, hold, nullptr));
    CHECK(cuLaunchKernel(function, 2, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr));
    if (!calls_back) return cuCtxSynchronize();
    for (int i = 0; i < 2; ++i) CHECK(cuStreamAddCallback(nullptr, tell, nullptr, 0));
    CHECK(cuLaunchHostFunc(nullptr, [](void*) { std::abort(); }, nullptr));
    begun = true;
    begun.notify_one();
    const CUresult status = cuCtxSynchronize();
    for (int seen = called; seen < 2; seen = called) called.wait(seen);
    for (const std::atomic<CUresult>& each : told) REQUIRE(each == status);
    return status;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string way = arguments[1];
    calls_back = count < 3;  // a program that lives may be fenced: what is behind its kernel is executed
    preload::start();
    if (way == "malformed") return load(kMalformed);
    if (way == "unknown") return load(kUnknown);
    if (way == "missing") return load(kMissing);
    CUresult status = CUDA_SUCCESS;
    if (way == "symbol") {
        CUmodule module = nullptr;
        CUfunction function = nullptr;
        CHECK(cuModuleLoadData(&module, kKernels));
        std::printf("%s\n", preload::name_of(cuModuleGetFunction(&function, module, "nobody")));
        return 0;
    }
    if (way == "wild") {
        CUdeviceptr address = 0x1234560;
        void* parameters[] = {&address};
        status = launch("wild", 1, parameters);
    } else if (way == "beyond") {  // one word behind an allocation
        CUdeviceptr address = 0;
        CHECK(cuMemAlloc(&address, 64));
        address += 64;
        void* parameters[] = {&address};
        status = launch("wild", 1, parameters);
    } else if (way == "freed") {
        CUdeviceptr address = 0;
        CHECK(cuMemAlloc(&address, 64));
        CHECK(cuMemFree(address));
        void* parameters[] = {&address};
        status = launch("wild", 1, parameters);
    } else if (way == "misaligned") {
        CUdeviceptr address = 0;
        CHECK(cuMemAlloc(&address, 64));
        address += 2;
        void* parameters[] = {&address};
        status = launch("wild", 1, parameters);
    } else {
        status = launch(way.c_str(), way == "stuck" ? 64 : 1, nullptr);
    }
    std::printf("%s\n", preload::name_of(status));
    CUdeviceptr memory = 0;
    REQUIRE(cuMemAlloc(&memory, 64) == status);  // for good
    REQUIRE(cuCtxSynchronize() == status);
    if (count < 3) return 0;
    preload::say("lives");
    std::getchar();
}
