// Calls that only ask, most of them generated: devices, contexts, limits, occupancy, tensor maps, and lookups
// of entry points.
#include <cstring>
#include <string_view>

#include "tests/preload/program.h"

constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\n";

void devices() {
    CUdevice device = 0;
    char name[64] = {}, cut[4] = {}, bus[32] = {};
    FAILS(cuDeviceGet(&device, 7), CUDA_ERROR_INVALID_DEVICE);
    CHECK(cuDeviceGetName(name, sizeof name, 0));
    CHECK(cuDeviceGetName(cut, sizeof cut, 0));
    REQUIRE(std::string_view(name) == "Fake GPU" && std::string_view(cut) == "Fak");
    CHECK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
    CHECK(cuDeviceGetByPCIBusId(&device, bus));
    REQUIRE(device == 0);
    int major = 0;
    CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    REQUIRE(major == 9);
}

// The stack of a thread's contexts is as deep as the program makes it.
void contexts(CUcontext primary) {
    constexpr int kDepth = 200;
    CUcontext made = nullptr, top = nullptr;
    CHECK(cuCtxCreate(&made, nullptr, 0, 0));
    for (int i = 0; i < kDepth; ++i) CHECK(cuCtxPushCurrent(i % 3 ? made : primary));
    CHECK(cuCtxGetCurrent(&top));
    REQUIRE(top == ((kDepth - 1) % 3 ? made : primary));
    for (int i = kDepth; i-- > 0;) {
        CHECK(cuCtxPopCurrent(&top));
        REQUIRE(top == (i % 3 ? made : primary));
    }
    CHECK(cuCtxDestroy(made));
    CHECK(cuCtxGetCurrent(&top));
    REQUIRE(top == primary);
}

void limits() {
    size_t bytes = 0;
    CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
    CHECK(cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE));
    REQUIRE(bytes == 2048);
    FAILS(cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuCtxGetLimit(&bytes, static_cast<CUlimit>(77)), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuCtxGetLimit(&bytes, CU_LIMIT_MAX_L2_FETCH_GRANULARITY), CUDA_ERROR_UNSUPPORTED_LIMIT);

    int least = 9, greatest = 9;  // either may be left out
    CHECK(cuCtxGetStreamPriorityRange(&least, nullptr));
    CHECK(cuCtxGetStreamPriorityRange(nullptr, &greatest));
    REQUIRE(least == 0 && greatest < 0);
}

void occupancy() {
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    int blocks = 0, clusters = 0;
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
    REQUIRE(blocks == 8);
    FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reinterpret_cast<CUfunction>(0x990), 256, 0),
          CUDA_ERROR_INVALID_HANDLE);
    CUlaunchAttribute attributes[2] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    CUlaunchConfig config{};
    config.attrs = attributes;
    config.numAttrs = 2;
    CHECK(cuOccupancyMaxActiveClusters(&clusters, fill, &config));
    REQUIRE(clusters == 4);
    FAILS(cuOccupancyMaxActiveClusters(&clusters, fill, nullptr), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuModuleUnload(module));
}

CUresult encode(CUtensorMap* map, cuuint32_t rank, void* address) {
    const cuuint64_t sizes[] = {10, 20, 30}, strides[] = {64, 640};
    const cuuint32_t ones[] = {1, 1, 1};
    return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, address, sizes, strides, ones,
                                  ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

void tensor_maps() {
    CUtensorMap map{};
    CHECK(encode(&map, 3, reinterpret_cast<void*>(0x1000)));
    REQUIRE(map.opaque[0] == 0x1000 && map.opaque[1] == 3 && map.opaque[4] == 30);
    FAILS(encode(&map, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
}

void* look_up(const char* name, int version, cuuint64_t flags = 0) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    CHECK(cuGetProcAddress(name, &found, version, flags, &status));
    return found;
}

void lookups() {
    REQUIRE(look_up("cuMemAlloc", 13000) == reinterpret_cast<void*>(cuMemAlloc));
    REQUIRE(look_up("cuMemAlloc", 2000) != reinterpret_cast<void*>(cuMemAlloc));
    void* twin = look_up("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    REQUIRE(twin && twin != reinterpret_cast<void*>(cuLaunchKernel));
    FAILS(cuMulticastAddDevice(0, 0), CUDA_ERROR_NOT_SUPPORTED);
}

// What is asked about a stream's priority goes by its last setting, within the range.
void stream_priorities() {
    int least = 0, greatest = 0, priority = 0;
    CUstream stream = nullptr;
    CUstreamAttrValue value{};
    CHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
    CHECK(cuStreamGetPriority(stream, &priority));
    REQUIRE(priority == greatest && greatest < least);
    value.priority = least;
    CHECK(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    CHECK(cuStreamGetPriority(stream, &priority));
    REQUIRE(priority == least);
    value.priority = greatest - 1;
    CHECK(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    CHECK(cuStreamGetPriority(stream, &priority));
    CHECK(cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    REQUIRE(priority == greatest && value.priority == greatest);
    CHECK(cuStreamDestroy(stream));
}

int main() {
    FAILS(cuCtxResetPersistingL2Cache(), CUDA_ERROR_NOT_INITIALIZED);
    CUcontext primary = preload::start();
    devices();
    contexts(primary);
    limits();
    occupancy();
    tensor_maps();
    lookups();
    stream_priorities();
}
