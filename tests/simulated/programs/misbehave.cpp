// misbehave WAY [lives]: one way to go wrong. It prints the error it gets, and that it stays.
//
//   lives   it says "lives" then, and reads a line before it ends
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

CUresult launch(const char* name, unsigned threads, void** parameters) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&function, module, name));
    CHECK(cuLaunchKernel(function, 2, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr));
    return cuCtxSynchronize();
}

}  // namespace

int main(int count, char** arguments) {
    const std::string way = arguments[1];
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
