// A program of the driver interface: links libcuda itself, loads PTX text and what NVRTC made,
// launches with packed parameters, maps memory by hand, and lets streams write and wait for words.
#include <cuda.h>
#include <dlfcn.h>

#include <string>
#include <vector>

#include "program.h"

inline void check(CUresult status, const char* text, int line) {
    const char* name = "?";
    if (status == CUDA_SUCCESS) return;
    cuGetErrorName(status, &name);
    std::printf("line %d: %s: %s\n", line, text, name);
    std::fflush(stdout);
    std::_Exit(1);
}

// out[i] = in[i] * factor + offset, offset being a variable of the module.
constexpr const char* kPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 offset = 7;
.visible .entry scale(.param .u64 in, .param .u64 out, .param .u32 factor)
{
    .reg .u32 %r<8>;
    .reg .u64 %a<6>;
    ld.param.u64 %a0, [in];
    ld.param.u64 %a1, [out];
    ld.param.u32 %r0, [factor];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %a2, %r4, 4;
    cvta.to.global.u64 %a0, %a0;
    cvta.to.global.u64 %a1, %a1;
    add.u64 %a3, %a0, %a2;
    add.u64 %a4, %a1, %a2;
    ld.global.u32 %r5, [%a3];
    ld.global.u32 %r6, [offset];
    mad.lo.u32 %r7, %r5, %r0, %r6;
    st.global.u32 [%a4], %r7;
    ret;
}
)";

constexpr int kCount = 4096;
constexpr size_t kBytes = kCount * sizeof(int);

void ptx_module(Result& result, CUdeviceptr in, CUdeviceptr out) {
    CUmodule module;
    CUfunction scale;
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&scale, module, "scale"));
    int threads = 0;
    CHECK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, scale));
    CUdeviceptr offset;
    size_t offset_bytes = 0;
    CHECK(cuModuleGetGlobal(&offset, &offset_bytes, module, "offset"));
    std::printf("threads %d, offset %zu bytes\n", threads, offset_bytes);
    std::vector<int> host(kCount), back(kCount);
    for (int i = 0; i < kCount; ++i) host[i] = i * 3;
    CHECK(cuMemcpyHtoD(in, host.data(), kBytes));
    CHECK(cuMemsetD32(offset, 1000, 1));
    struct {
        CUdeviceptr in, out;
        unsigned factor;
    } packed = {in, out, 5};
    size_t bytes = 20;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(scale, kCount / 256, 1, 1, 256, 1, 1, 0, CU_STREAM_LEGACY, nullptr, extra));
    CHECK(cuMemcpyDtoH(back.data(), out, kBytes));
    bool right = true;
    for (int i = 0; i < kCount; ++i) right &= back[i] == i * 15 + 1000;
    result.expect(right, "PTX module");
    result.fold(back.data(), kBytes);
    std::printf("a kernel that is not there: %d\n", cuModuleGetFunction(&scale, module, "absent"));
    CHECK(cuModuleUnload(module));
    std::printf("PTX that is none: %d\n",
                cuModuleLoadData(&module, ".version 8.0\n.target sm_80\nnonsense\n"));
}

void nvrtc_library(Result& result, CUdeviceptr out) {
    void* nvrtc = dlopen("libnvrtc.so.13", RTLD_NOW);
    if (nvrtc == nullptr) return static_cast<void>(std::printf("no NVRTC here\n"));
    using Program = void*;
    const auto create =
        reinterpret_cast<int (*)(Program*, const char*, const char*, int, const char**, const char**)>(
            dlsym(nvrtc, "nvrtcCreateProgram"));
    const auto compile =
        reinterpret_cast<int (*)(Program, int, const char* const*)>(dlsym(nvrtc, "nvrtcCompileProgram"));
    Program program;
    const char* options[] = {"--gpu-architecture=sm_90"};
    CHECK(static_cast<CUresult>(create(&program,
                                       "extern \"C\" __global__ void squares(int* out) { int i = blockIdx.x "
                                       "* blockDim.x + threadIdx.x; out[i] = i * i; }",
                                       "squares.cu", 0, nullptr, nullptr)));
    CHECK(static_cast<CUresult>(compile(program, 1, options)));
    size_t bytes = 0;
    CHECK(static_cast<CUresult>(
        reinterpret_cast<int (*)(Program, size_t*)>(dlsym(nvrtc, "nvrtcGetCUBINSize"))(program, &bytes)));
    std::string cubin(bytes, '\0');
    CHECK(static_cast<CUresult>(
        reinterpret_cast<int (*)(Program, char*)>(dlsym(nvrtc, "nvrtcGetCUBIN"))(program, cubin.data())));
    CUlibrary library;
    CUkernel kernel;
    CHECK(cuLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "squares"));
    void* arguments[] = {&out};
    CHECK(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), kCount / 128, 1, 1, 128, 1, 1, 0, nullptr,
                         arguments, nullptr));
    std::vector<int> back(kCount);
    CHECK(cuMemcpyDtoH(back.data(), out, kBytes));
    bool right = true;
    for (int i = 0; i < kCount; ++i) right &= back[i] == i * i;
    result.expect(right, "NVRTC library");
    result.fold(back.data(), kBytes);
    CHECK(cuLibraryUnload(library));
}

void memory_by_hand(Result& result, CUdevice device);
void words_and_events(Result& result, CUdeviceptr words);

int main() {
    Result result;
    CUdevice device;
    CUcontext context, current;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuCtxGetCurrent(&current));
    result.expect(current == context, "current context");
    CUdeviceptr in, out;
    CHECK(cuMemAlloc(&in, kBytes));
    CHECK(cuMemAlloc(&out, kBytes));
    ptx_module(result, in, out);
    nvrtc_library(result, out);
    memory_by_hand(result, device);
    words_and_events(result, in);
    CHECK(cuMemFree(in));
    CHECK(cuMemFree(out));
    CHECK(cuCtxPopCurrent(&current));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return result.finish();
}

#include "driver_api_memory.h"
