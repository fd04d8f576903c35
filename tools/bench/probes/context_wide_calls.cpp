// Which driver calls wait for the whole context? A stream waits for a word in host memory; each call is
// made meanwhile, and a watcher writes the word after a quarter of a second if the call has not returned.
// One line a call: its time, and WAITS if it needed the watcher. No smt in it: run it natively.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <thread>

#define CHECK(call)                                                                 \
    do {                                                                            \
        if (CUresult status = (call)) std::printf("%s: error %d\n", #call, status); \
    } while (0)

constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 g[1024];
.visible .entry k() {
  .reg .u32 %r<4>; .local .align 4 .b8 l[16];
  mov.u32 %r1, 5; st.local.u32 [l], %r1; ld.local.u32 %r2, [l]; st.global.u32 [g], %r2; ret;
}
.visible .entry k2() {
  .local .align 4 .b8 big[40000]; .reg .u32 %r<4>; .reg .u64 %a<4>;
  mov.u32 %r1, %tid.x; mov.u64 %a1, big; cvt.u64.u32 %a2, %r1; shl.b64 %a2, %a2, 2; add.u64 %a1, %a1, %a2;
  st.local.u32 [%a1], %r1; ld.local.u32 %r2, [%a1+36000]; st.global.u32 [g], %r2; ret;
}
.visible .entry k3() { ret; }
)";

std::atomic<uint64_t>* word;
CUdeviceptr word_address;
uint64_t value = 0;
CUstream held, other;
CUfunction empty;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void launch(CUfunction function, CUstream stream, unsigned shared = 0) {
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, shared, stream, nullptr, nullptr));
}

void probe(const char* name, const std::function<void()>& call) {
    ++value;
    CHECK(cuStreamWaitValue64(held, word_address, value, CU_STREAM_WAIT_VALUE_GEQ));
    launch(empty, held);
    std::atomic<bool> done{false};
    bool waited = false;
    std::thread watcher([&] {
        for (int i = 0; i < 250 && !done; ++i) usleep(1000);
        waited = !done;
        word->store(value);
    });
    const double start = now();
    call();
    const double took = now() - start;
    done = true;
    watcher.join();
    CHECK(cuCtxSynchronize());
    std::printf("%-40s %8.2f ms %s\n", name, took * 1e3, waited ? "WAITS" : "");
    std::fflush(stdout);
}

void code() {
    CUmodule module;
    CUfunction small, deep;
    CUlibrary library;
    CUkernel kernel;
    probe("cuModuleLoadData", [&] { CHECK(cuModuleLoadData(&module, kPtx)); });
    probe("cuModuleGetFunction", [&] { CHECK(cuModuleGetFunction(&small, module, "k")); });
    probe("first launch of a kernel", [&] { launch(small, other); });
    probe("cuModuleGetFunction, deep stack", [&] { CHECK(cuModuleGetFunction(&deep, module, "k2")); });
    probe("first launch with a deep stack", [&] { launch(deep, other); });
    probe("cuFuncSetAttribute",
          [&] { CHECK(cuFuncSetAttribute(small, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000)); });
    probe("launch with much shared memory", [&] { launch(small, other, 100000); });
    probe("cuModuleUnload", [&] { CHECK(cuModuleUnload(module)); });
    probe("cuLibraryLoadData",
          [&] { CHECK(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0)); });
    probe("cuLibraryGetKernel", [&] { CHECK(cuLibraryGetKernel(&kernel, library, "k")); });
    probe("cuLibraryGetModule", [&] {
        CUmodule of;
        CHECK(cuLibraryGetModule(&of, library));
    });
    probe("cuLibraryUnload", [&] { CHECK(cuLibraryUnload(library)); });
    probe("cuCtxSetLimit, stack", [&] { CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536)); });
}

void memory(char* shared) {
    CUdeviceptr plain, pooled, range;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const size_t bytes = 32u << 20;
    void* host;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR shape{64, 64, CU_AD_FORMAT_FLOAT, 1};
    probe("cuMemAlloc", [&] { CHECK(cuMemAlloc(&plain, 4u << 20)); });
    probe("cuMemsetD32Async", [&] { CHECK(cuMemsetD32Async(plain, 1, 16, other)); });
    probe("cuMemFree", [&] { CHECK(cuMemFree(plain)); });
    probe("cuMemAllocAsync", [&] { CHECK(cuMemAllocAsync(&pooled, 4096, other)); });
    probe("cuMemFreeAsync", [&] { CHECK(cuMemFreeAsync(pooled, other)); });
    probe("cuMemCreate", [&] { CHECK(cuMemCreate(&handle, bytes, &properties, 0)); });
    probe("cuMemAddressReserve", [&] { CHECK(cuMemAddressReserve(&range, bytes, 0, 0, 0)); });
    probe("cuMemMap", [&] { CHECK(cuMemMap(range, bytes, 0, handle, 0)); });
    probe("cuMemSetAccess", [&] { CHECK(cuMemSetAccess(range, bytes, &access, 1)); });
    probe("cuMemUnmap", [&] { CHECK(cuMemUnmap(range, bytes)); });
    probe("cuMemRelease", [&] { CHECK(cuMemRelease(handle)); });
    probe("cuMemAddressFree", [&] { CHECK(cuMemAddressFree(range, bytes)); });
    probe("cuMemHostRegister",
          [&] { CHECK(cuMemHostRegister(shared + (4u << 20), 16u << 20, CU_MEMHOSTREGISTER_DEVICEMAP)); });
    probe("cuMemHostUnregister", [&] { CHECK(cuMemHostUnregister(shared + (4u << 20))); });
    probe("cuMemHostAlloc", [&] { CHECK(cuMemHostAlloc(&host, 1u << 20, 0)); });
    probe("cuMemFreeHost", [&] { CHECK(cuMemFreeHost(host)); });
    probe("cuArrayCreate", [&] { CHECK(cuArrayCreate(&array, &shape)); });
    probe("cuArrayDestroy", [&] { CHECK(cuArrayDestroy(array)); });
}

void streams() {
    CUstream stream;
    CUevent event;
    probe("cuStreamCreate", [&] { CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); });
    probe("first work on it", [&] { launch(empty, stream); });
    probe("cuStreamDestroy", [&] { CHECK(cuStreamDestroy(stream)); });
    probe("cuEventCreate", [&] { CHECK(cuEventCreate(&event, 0)); });
    probe("cuEventDestroy", [&] { CHECK(cuEventDestroy(event)); });
    probe("cuLaunchHostFunc", [&] { CHECK(cuLaunchHostFunc(other, [](void*) {}, nullptr)); });
}

int main() {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    const int file = memfd_create("probe", 0);
    if (ftruncate(file, 64u << 20) != 0) return 1;
    char* shared = static_cast<char*>(mmap(nullptr, 64u << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    CHECK(cuMemHostRegister(shared, 2u << 20, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE));
    CHECK(cuMemHostGetDevicePointer(&word_address, shared, 0));
    word = reinterpret_cast<std::atomic<uint64_t>*>(shared);
    CHECK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&empty, module, "k3"));
    launch(empty, other);
    probe("nothing", [] {});
    code();
    memory(shared);
    streams();
}
