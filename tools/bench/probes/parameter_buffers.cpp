// Which sizes of a parameter buffer (CU_LAUNCH_PARAM_BUFFER_SIZE) a launch takes, and what a kernel gets
// where the buffer is shorter than its parameters. The buffer's end lies at the end of a page, behind which
// nothing may be read.
//
//     parameter_buffers     needs a GPU
#include <cuda.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#define CHECK(call)                                                            \
    do {                                                                       \
        const CUresult status = call;                                          \
        if (status) return std::fprintf(stderr, "%s: %d\n", #call, status), 1; \
    } while (false)

namespace {

// The kernel copies words 0 and 15 of its parameter to a variable.
constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 out[4];
.visible .entry first(.param .align 8 .b8 p[64]) {
  .reg .u32 %r<4>;
  ld.param.u32 %r1, [p]; ld.param.u32 %r2, [p+60];
  st.global.u32 [out], %r1; st.global.u32 [out+4], %r2; ret; }
)";

}  // namespace

int main() {
    CHECK(cuInit(0));
    CUcontext context;
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&function, module, "first"));
    CHECK(cuModuleGetGlobal(&out, nullptr, module, "out"));

    constexpr size_t kPage = 4096;
    char* pages = static_cast<char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(pages + kPage, kPage);
    for (size_t bytes : std::initializer_list<size_t>{0, 1, 4, 8, 32, 60, 63, 64, 65, 128, 4096}) {
        char* buffer = pages + kPage - bytes;
        std::memset(buffer, 7, bytes);
        void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                         CU_LAUNCH_PARAM_END};
        CHECK(cuMemsetD32(out, 0xffffffff, 2));
        const CUresult status = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra);
        unsigned words[2] = {};
        CHECK(cuMemcpyDtoH(words, out, sizeof words));
        std::printf("{\"bytes\": %zu, \"status\": %d, \"first\": \"%x\", \"last\": \"%x\"}\n", bytes, status,
                    words[0], words[1]);
    }
    size_t none = 0;
    void* missing[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &none, CU_LAUNCH_PARAM_END};
    std::printf("{\"without a buffer\": %d}\n",
                cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, missing));
    return 0;
}
