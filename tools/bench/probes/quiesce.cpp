// What stands still while streams wait for a word, natively.
//   behind: 1 to 16 streams wait, each with one piece of work behind its wait, and streams that wait for
//   nothing are given a piece of work each. Printed are how many of those do not end while the waiters wait.
//   after: three streams wait, a call is made that does not itself wait, and then the others are given their
//   work.
// Connections as CUDA_DEVICE_MAX_CONNECTIONS and CUDA_DEVICE_MAX_COPY_CONNECTIONS say.
//
//     standstill [behind|after]     needs a GPU
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#define CHECK(call)                                                            \
    do {                                                                       \
        const CUresult status = call;                                          \
        if (status) return std::fprintf(stderr, "%s: %d\n", #call, status), 1; \
    } while (false)

namespace {

constexpr int kWaiters = 16, kOthers = 40;
constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 g[1024];
.visible .entry empty() { ret; }
.visible .entry small() { .reg .u32 %r<4>; mov.u32 %r1, 5; st.global.u32 [g], %r1; ret; }
.visible .entry local() {
  .reg .u32 %r<4>; .reg .u64 %a<3>; .local .align 4 .b8 l[256];
  mov.u32 %r1, %tid.x; mov.u64 %a1, l; cvt.u64.u32 %a2, %r1; shl.b64 %a2, %a2, 2; add.u64 %a1, %a1, %a2;
  st.local.u32 [%a1], %r1; ld.local.u32 %r2, [%a1+8]; st.global.u32 [g], %r2; ret;
}
)";
CUdeviceptr device_memory = 0, host_address = 0;
void* host_memory = nullptr;
CUfunction empty = nullptr;

enum class Work { kDtoD, kDtoD1M, kHtoD, kDtoH, kMemset, kMemset1M, kKernel, kWrite, kCount };
constexpr std::array kNames{"DtoD 4 B",   "DtoD 1 MiB",   "HtoD",   "DtoH",
                            "memset 4 B", "memset 1 MiB", "kernel", "write"};

CUresult give(Work work, CUstream stream, size_t number) {
    const CUdeviceptr own = device_memory + number * (4u << 20), host = host_address + 64 + number * 64;
    char* const pinned = static_cast<char*>(host_memory) + 8192 + number * 4096;
    switch (work) {
        case Work::kDtoD:
            return cuMemcpyDtoDAsync(own, own + 64, 4, stream);
        case Work::kDtoD1M:
            return cuMemcpyDtoDAsync(own, own + (2u << 20), 1u << 20, stream);
        case Work::kHtoD:
            return cuMemcpyHtoDAsync(own, pinned, 4096, stream);
        case Work::kDtoH:
            return cuMemcpyDtoHAsync(pinned, own, 4096, stream);
        case Work::kMemset:
            return cuMemsetD32Async(own, 5, 1, stream);
        case Work::kMemset1M:
            return cuMemsetD32Async(own, 5, 1u << 18, stream);
        case Work::kKernel:
            return cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr);
        default:
            return cuStreamWriteValue32(stream, host, 1, 0);
    }
}

volatile uint32_t& word() { return *static_cast<volatile uint32_t*>(host_memory); }

// Gives the others their work, prints what stands still, lets the waiters go.
int look(const std::vector<CUstream>& others, unsigned turn) {
    for (int kind = 0; kind < static_cast<int>(Work::kCount); ++kind) {
        int stuck = 0;
        for (size_t i = 0; i < others.size(); ++i)
            CHECK(give(static_cast<Work>(kind), others[i], kWaiters + i));
        usleep(3'000);
        for (CUstream stream : others) stuck += cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
        std::printf("  %s %d", kNames[kind], stuck);
        if (stuck) break;  // what comes after it in those streams could not end either
    }
    std::printf("\n");
    std::fflush(stdout);
    word() = turn;
    CHECK(cuCtxSynchronize());
    return 0;
}

int wait(Work behind, int waiters, const std::vector<CUstream>& waiting, unsigned turn) {
    for (int i = 0; i < waiters; ++i) {
        CHECK(cuStreamWaitValue32(waiting[i], host_address, turn, CU_STREAM_WAIT_VALUE_GEQ));
        CHECK(give(behind, waiting[i], i));
    }
    return 0;
}

struct Streams {
    std::vector<CUstream> waiting, others;
    unsigned turn = 0;
};

int show_behind(Streams& streams) {
    for (int behind = 0; behind < static_cast<int>(Work::kCount); ++behind) {
        for (int waiters : {1, 2, 3, 4, 8, 16}) {
            if (wait(static_cast<Work>(behind), waiters, streams.waiting, ++streams.turn)) return 1;
            std::printf("%2d wait with %-12s behind:", waiters, kNames[behind]);
            if (look(streams.others, streams.turn)) return 1;
        }
    }
    return 0;
}

// The call is made on a thread of its own; one that waits itself is helped after 200 ms.
int show_after(Streams& streams, const char* name, const std::function<CUresult()>& call) {
    if (wait(Work::kDtoD, 3, streams.waiting, ++streams.turn)) return 1;
    std::atomic<int> status{-1};
    std::thread caller([&] {
        CUcontext context;
        cuDevicePrimaryCtxRetain(&context, 0);
        cuCtxSetCurrent(context);
        status = call();
    });
    for (int i = 0; i < 200 && status == -1; ++i) usleep(1000);
    const bool waits = status == -1;
    if (waits) word() = streams.turn;
    caller.join();
    std::printf("after %-34s %s(%d)", name, waits ? "WAITS ITSELF " : "", status.load());
    return look(streams.others, streams.turn);
}

#define AFTER(text, ...) \
    if (show_after(streams, text, [&]() -> CUresult { return __VA_ARGS__; })) return 1

int show_code(Streams& streams) {
    CUmodule module;
    CUfunction small, local;
    CUlibrary library;
    CUkernel kernel;
    CUdeviceptr global;
    CUfunctionLoadingState loading;
    std::array<CUfunction, 3> functions{};
    size_t bytes = 0;
    int number = 0;
    AFTER("nothing", CUDA_SUCCESS);
    AFTER("cuModuleLoadData", cuModuleLoadData(&module, kPtx));
    AFTER("cuModuleGetFunction", cuModuleGetFunction(&small, module, "small"));
    AFTER("its first launch",
          cuLaunchKernel(small, 1, 1, 1, 1, 1, 1, 0, streams.others[0], nullptr, nullptr));
    AFTER("cuModuleGetFunction again", cuModuleGetFunction(&small, module, "small"));
    AFTER("cuModuleGetGlobal", cuModuleGetGlobal(&global, &bytes, module, "g"));
    AFTER("cuModuleGetFunction, local memory", cuModuleGetFunction(&local, module, "local"));
    AFTER("its first launch",
          cuLaunchKernel(local, 1, 1, 1, 1, 1, 1, 0, streams.others[0], nullptr, nullptr));
    AFTER("cuFuncSetAttribute",
          cuFuncSetAttribute(small, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    AFTER("launch with 100000 B shared",
          cuLaunchKernel(small, 1, 1, 1, 1, 1, 1, 100000, streams.others[0], nullptr, nullptr));
    AFTER("cuLibraryLoadData", cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    AFTER("cuLibraryGetKernel", cuLibraryGetKernel(&kernel, library, "small"));
    AFTER("its first launch", cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0,
                                             streams.others[0], nullptr, nullptr));
    AFTER("cuLibraryUnload", cuLibraryUnload(library));
    AFTER("cuLibraryLoadData", cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    AFTER("cuLibraryGetModule", cuLibraryGetModule(&module, library));
    AFTER("cuLibraryGetGlobal", cuLibraryGetGlobal(&global, &bytes, library, "g"));
    AFTER("cuLibraryGetKernel", cuLibraryGetKernel(&kernel, library, "small"));
    AFTER("cuKernelGetAttribute", cuKernelGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0));
    AFTER("cuKernelGetFunction", cuKernelGetFunction(&small, kernel));
    AFTER("cuFuncGetAttribute", cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, small));
    AFTER("cuLibraryEnumerateKernels", cuLibraryEnumerateKernels(&kernel, 1, library));
    AFTER("cuModuleEnumerateFunctions", cuModuleEnumerateFunctions(functions.data(), 3, module));
    AFTER("cuFuncGetAttribute of one of them",
          cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, functions[1]));
    AFTER("cuFuncIsLoaded", cuFuncIsLoaded(&loading, functions[2]));
    AFTER("cuFuncLoad", cuFuncLoad(functions[0]));
    AFTER("cuFuncLoad", cuFuncLoad(functions[1]));
    AFTER("cuFuncLoad", cuFuncLoad(functions[2]));
    AFTER("cuOccupancyMaxActiveBlocks",
          cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, functions[2], 32, 0));
    AFTER("cuLibraryUnload", cuLibraryUnload(library));
    return 0;
}

int show_memory(Streams& streams) {
    CUdeviceptr plain, huge, pooled, range;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    constexpr size_t kBytes = 32u << 20;
    void* host = nullptr;
    CUstream stream;
    CUevent event;
    void* const shared = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    AFTER("cuMemAlloc 4 KiB", cuMemAlloc(&plain, 4096));
    AFTER("cuMemAlloc 512 MiB", cuMemAlloc(&huge, 512u << 20));
    AFTER("memset of it", cuMemsetD8Async(huge, 0, 512u << 20, streams.others[0]));
    AFTER("memset D16", cuMemsetD16Async(huge, 0, 1u << 20, streams.others[0]));
    AFTER("memset 2D", cuMemsetD2D8Async(huge, 512, 1, 100, 100, streams.others[0]));
    AFTER("cuMemAllocAsync", cuMemAllocAsync(&pooled, 4096, streams.others[0]));
    AFTER("cuMemFreeAsync", cuMemFreeAsync(pooled, streams.others[0]));
    AFTER("cuMemCreate", cuMemCreate(&handle, kBytes, &properties, 0));
    AFTER("cuMemAddressReserve", cuMemAddressReserve(&range, kBytes, 0, 0, 0));
    AFTER("cuMemMap", cuMemMap(range, kBytes, 0, handle, 0));
    AFTER("cuMemSetAccess", cuMemSetAccess(range, kBytes, &access, 1));
    AFTER("memset of it", cuMemsetD8Async(range, 0, kBytes, streams.others[0]));
    AFTER("cuMemUnmap", cuMemUnmap(range, kBytes));
    AFTER("cuMemRelease", cuMemRelease(handle));
    AFTER("cuMemAddressFree", cuMemAddressFree(range, kBytes));
    AFTER("cuMemHostRegister",
          cuMemHostRegister(shared, kBytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE));
    AFTER("HtoD from it", cuMemcpyHtoDAsync(huge, shared, 4096, streams.others[0]));
    AFTER("cuMemHostUnregister", cuMemHostUnregister(shared));
    AFTER("cuMemHostAlloc", cuMemHostAlloc(&host, 1u << 20, 0));
    AFTER("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    AFTER("first work on it", cuMemsetD32Async(huge, 1, 1, stream));
    AFTER("cuStreamDestroy", cuStreamDestroy(stream));
    AFTER("cuStreamCreateWithPriority", cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1));
    AFTER("first work on it", cuMemsetD32Async(huge, 1, 1, stream));
    AFTER("cuStreamWriteValue64", cuStreamWriteValue64(stream, huge, 1, 0));
    AFTER("cuStreamDestroy", cuStreamDestroy(stream));
    AFTER("cuEventCreate", cuEventCreate(&event, 0));
    AFTER("cuEventRecord", cuEventRecord(event, streams.others[0]));
    AFTER("cuStreamWaitEvent", cuStreamWaitEvent(streams.others[1], event, 0));
    AFTER("cuEventDestroy", cuEventDestroy(event));
    AFTER("cuMemFree", cuMemFree(plain));
    return 0;
}

const char* setting(const char* name) { return std::getenv(name) ? std::getenv(name) : "unset"; }

}  // namespace

int main(int count, char** arguments) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemHostAlloc(&host_memory, 1u << 20, CU_MEMHOSTALLOC_DEVICEMAP));
    CHECK(cuMemHostGetDevicePointer(&host_address, host_memory, 0));
    CHECK(cuMemAlloc(&device_memory, static_cast<size_t>(kWaiters + kOthers) * (4u << 20)));
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&empty, module, "empty"));
    word() = 0;
    std::vector<CUstream> waiting(kWaiters), others(kOthers);
    for (CUstream& stream : waiting) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (CUstream& stream : others) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (CUstream stream : others) {  // every path is taken once before anything waits
        for (int kind = 0; kind < static_cast<int>(Work::kCount); ++kind)
            CHECK(give(static_cast<Work>(kind), stream, kWaiters));
        CHECK(cuStreamSynchronize(stream));
    }
    std::printf(
        "CUDA_DEVICE_MAX_CONNECTIONS=%s CUDA_DEVICE_MAX_COPY_CONNECTIONS=%s: of %d other streams these stand "
        "still\n",
        setting("CUDA_DEVICE_MAX_CONNECTIONS"), setting("CUDA_DEVICE_MAX_COPY_CONNECTIONS"), kOthers);
    Streams streams{waiting, others};
    if ((count < 2 || !std::strcmp(arguments[1], "behind")) && show_behind(streams)) return 1;
    if ((count < 2 || !std::strcmp(arguments[1], "after")) && (show_code(streams) || show_memory(streams)))
        return 1;
    return 0;
}
