// What the runtime says of itself and of the device, and how it says no.
#include <cuda.h>
#include <cuda_profiler_api.h>

#include <cstring>
#include <thread>

#include "tests/cudart/program.h"

void devices() {
    int count = 0, device = 9, driver = 0, runtime = 0, value = 0;
    CHECK(cudaFree(nullptr));
    CHECK(cudaGetDeviceCount(&count));
    REQUIRE(count == 1);
    CHECK(cudaGetDevice(&device));
    REQUIRE(device == 0);
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    REQUIRE(driver >= 13000 && runtime == CUDART_VERSION);
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    REQUIRE(std::strcmp(properties.name, "Fake GPU") == 0);
    REQUIRE(properties.major == 9 && properties.minor == 0 && properties.warpSize == 32);
    REQUIRE(properties.maxThreadsDim[0] == 1024 && properties.maxThreadsDim[2] == 64);
    REQUIRE(properties.sharedMemPerBlock == 48 << 10);
    // Every field that has an attribute must hold it.
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    REQUIRE(properties.multiProcessorCount == value && value > 0);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    REQUIRE(properties.maxThreadsPerMultiProcessor == value);
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    REQUIRE(free > 0 && free <= total && total <= properties.totalGlobalMem);
    FAILS(cudaSetDevice(1), cudaErrorInvalidDevice);
    FAILS(cudaSetDevice(-1), cudaErrorInvalidDevice);
    FAILS(cudaGetDeviceProperties(&properties, 7), cudaErrorInvalidDevice);
    FAILS(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    CHECK(cudaSetDevice(0));
    CHECK(cudaInitDevice(0, 0, 0));
    CHECK(cudaChooseDevice(&device, &properties));
    CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    unsigned flags = 0;
    CHECK(cudaGetDeviceFlags(&flags));
    REQUIRE((flags & cudaDeviceMapHost) != 0);
    FAILS(cudaSetDeviceFlags(0x1000), cudaErrorInvalidValue);
    CHECK(cudaProfilerStart());
    CHECK(cudaProfilerStop());
}

// The program's own context is used where it made one current.
void contexts() {
    CUcontext primary = nullptr, own = nullptr, now = nullptr;
    REQUIRE(cuCtxGetCurrent(&primary) == CUDA_SUCCESS && primary);
    REQUIRE(cuCtxCreate(&own, nullptr, 0, 0) == CUDA_SUCCESS);
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, 64));
    REQUIRE(cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == own);
    CHECK(cudaFree(memory));
    REQUIRE(cuCtxDestroy(own) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
    CHECK(cudaMalloc(&memory, 64));
    REQUIRE(cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == primary);
    std::thread([&] {
        CUcontext fresh = own;
        CHECK(cudaMemset(memory, 0, 64));
        REQUIRE(cuCtxGetCurrent(&fresh) == CUDA_SUCCESS && fresh == primary);
    }).join();
    // A reset in one thread, and the next call in another finds a new context.
    std::thread([&] { CHECK(cudaDeviceReset()); }).join();
    unsigned flags = 0;
    int active = 1;
    REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && !active);
    CHECK(cudaMalloc(&memory, 64));
    REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && active);
    CHECK(cudaFree(memory));
}

// Each thread has its own last error.
void errors() {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, 1ull << 50) == cudaErrorMemoryAllocation);
    std::thread([] {
        REQUIRE(cudaPeekAtLastError() == cudaSuccess);
        REQUIRE(cudaFree(reinterpret_cast<void*>(0x1234)) == cudaErrorInvalidValue);
        REQUIRE(cudaGetLastError() == cudaErrorInvalidValue);
    }).join();
    REQUIRE(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaDeviceSynchronize());  // success does not clear it
    REQUIRE(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
    REQUIRE(std::strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
    REQUIRE(std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
    REQUIRE(std::strcmp(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code") == 0);
}

void textures() {
    float* device;
    CHECK(cudaMalloc(&device, 4096));
    cudaResourceDesc resource{}, asked{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {device, cudaCreateChannelDesc<float4>(), 4096};
    cudaTextureDesc description{};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    CHECK(cudaGetTextureObjectResourceDesc(&asked, texture));
    REQUIRE(asked.res.linear.devPtr == device && asked.res.linear.desc.w == 32 &&
            asked.res.linear.sizeInBytes == 4096);
    REQUIRE(asked.res.linear.desc.f == cudaChannelFormatKindFloat);
    CHECK(cudaDestroyTextureObject(texture));
    resource.res.linear.desc.y = 16;
    FAILS(cudaCreateTextureObject(&texture, &resource, &description, nullptr),
          cudaErrorInvalidChannelDescriptor);
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<short2>(), found;
    cudaExtent extent;
    unsigned flags;
    CHECK(cudaMallocArray(&array, &format, 33, 7, cudaArraySurfaceLoadStore));
    CHECK(cudaArrayGetInfo(&found, &extent, &flags, array));
    REQUIRE(found.x == 16 && found.y == 16 && found.z == 0 && found.f == cudaChannelFormatKindSigned);
    REQUIRE(extent.width == 33 && extent.height == 7 && flags == cudaArraySurfaceLoadStore);
    CHECK(cudaFreeArray(array));
}

// A run of bytes that begins and ends inside of an array's rows.
void runs() {
    constexpr size_t kWidth = 32, kHeight = 8;
    unsigned char host[kWidth * kHeight] = {}, back[kWidth * kHeight] = {};
    for (size_t i = 0; i < sizeof host; ++i) host[i] = static_cast<unsigned char>(i * 7);
    cudaArray_t array, other;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
    CHECK(cudaMallocArray(&array, &format, kWidth, kHeight));
    CHECK(cudaMallocArray(&other, &format, kWidth, kHeight));
    CHECK(cudaMemcpyToArray(array, 5, 1, host, 100, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyArrayToArray(other, 3, 2, array, 5, 1, 100, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpyFromArray(back, other, 3, 2, 100, cudaMemcpyDeviceToHost));
    REQUIRE(std::memcmp(back, host, 100) == 0);
    CHECK(cudaMemcpy2DFromArray(back, 16, array, 5, 1, 16, 2, cudaMemcpyDeviceToHost));
    REQUIRE(std::memcmp(back, host, 16) == 0 && std::memcmp(back + 16, host + kWidth, 16) == 0);
    FAILS(cudaMemcpy2D(back, 8, host, 8, 16, 1, cudaMemcpyHostToHost), cudaErrorInvalidValue);
}

void driver_entry_points() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 13000, cudaEnableDefault, &found));
    CUdeviceptr memory = 0;
    REQUIRE(found == cudaDriverEntryPointSuccess && function);
    REQUIRE(reinterpret_cast<CUresult (*)(CUdeviceptr*, size_t)>(function)(&memory, 16) == CUDA_SUCCESS);
    CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 13000, cudaEnableDefault, &found));
    REQUIRE(found == cudaDriverEntryPointSymbolNotFound && !function);
}

// Handles of memory and events reach the driver as they are. Other processes: tests/simulated/sharing.py.
void shared_memory() {
    void *memory = nullptr, *opened = nullptr;
    cudaIpcMemHandle_t handle{};
    cudaIpcEventHandle_t event_handle{};
    cudaEvent_t event = nullptr, other = nullptr;
    CHECK(cudaMalloc(&memory, 4096));
    CHECK(cudaIpcGetMemHandle(&handle, memory));
    FAILS(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
          cudaErrorDeviceUninitialized);  // as natively in the process that has it
    FAILS(cudaIpcOpenMemHandle(&opened, handle, 0), cudaErrorInvalidValue);
    FAILS(cudaIpcCloseMemHandle(memory), cudaErrorInvalidValue);
    FAILS(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
    CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    CHECK(cudaIpcGetEventHandle(&event_handle, event));
    FAILS(cudaIpcOpenEventHandle(&other, event_handle), cudaErrorDeviceUninitialized);
    CHECK(cudaEventRecord(event, nullptr));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaEventQuery(event));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaFree(memory));
}

int main() {
    devices();
    contexts();
    errors();
    textures();
    runs();
    driver_entry_points();
    shared_memory();
    for (int i = 0; i < 3; ++i) FAILS(cudaDeviceDisablePeerAccess(0), cudaErrorNotSupported);
    CHECK(cudaDeviceSynchronize());  // a process that leaves at once takes its last records with it
    return 0;
}
