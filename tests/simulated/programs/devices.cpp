// devices [ORDINAL]: a line for each device that the program sees: "0 GPU-f0f1f2f3 0000:01:00.0". With
// ORDINAL it then computes on that device.
#include <cstring>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr unsigned kBlocks = 4, kThreads = 64;

void show(CUdevice device) {
    CUdevice found = -1;
    CUuuid uuid{};
    char bus[32], name[256], other[256];
    int bus_number = 0, major = 0;
    size_t memory = 0, first_memory = 0;
    CHECK(cuDeviceGetUuid(&uuid, device));
    CHECK(cuDeviceGetPCIBusId(bus, sizeof bus, device));
    CHECK(cuDeviceGetByPCIBusId(&found, bus));
    REQUIRE(found == device);
    CHECK(cuDeviceGetAttribute(&bus_number, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device));
    REQUIRE(bus_number == std::strtol(bus + 5, nullptr, 16));
    CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    REQUIRE(major == 9);
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDeviceGetName(other, sizeof other, 0));
    REQUIRE(std::strcmp(name, other) == 0);  // they are alike
    CHECK(cuDeviceTotalMem(&memory, device));
    CHECK(cuDeviceTotalMem(&first_memory, 0));
    REQUIRE(memory == first_memory && memory > 0);
    std::printf("%d GPU-", device);
    for (int byte = 0; byte < 4; ++byte) std::printf("%02x", static_cast<unsigned char>(uuid.bytes[byte]));
    std::printf(" %s\n", bus);
}

void compute(CUdevice device) {
    CUcontext context = nullptr;
    CUdevice current = -1;
    CUmodule module = nullptr;
    CUfunction spin = nullptr;
    CUdeviceptr counter = 0;
    int ordinal = -1;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuCtxGetDevice(&current));
    REQUIRE(current == device);
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CHECK(cuMemAlloc(&counter, 4));
    CHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, counter));
    REQUIRE(ordinal == device);
    CHECK(cuMemsetD32(counter, 0, 1));
    unsigned rounds = 10, threads = 0;
    void* parameters[] = {&rounds, &counter};
    CHECK(cuLaunchKernel(spin, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuMemcpyDtoH(&threads, counter, 4));
    REQUIRE(threads == kBlocks * kThreads);
}

}  // namespace

int main(int count, char** arguments) {
    CHECK(cuInit(0));
    int devices = 0, can = -1;
    CHECK(cuDeviceGetCount(&devices));
    for (int i = 0; i < devices; ++i) {
        CUdevice device = -1;
        CHECK(cuDeviceGet(&device, i));
        show(device);
    }
    CUdevice none = 0;
    FAILS(cuDeviceGet(&none, devices), CUDA_ERROR_INVALID_DEVICE);
    FAILS(cuDeviceGet(&none, -1), CUDA_ERROR_INVALID_DEVICE);
    if (devices > 1) {
        CHECK(cuDeviceCanAccessPeer(&can, 0, 1));
        REQUIRE(can == 1);
        FAILS(cuDeviceCanAccessPeer(&can, 0, devices), CUDA_ERROR_INVALID_DEVICE);
    }
    if (count < 2) return 0;
    const CUdevice device = std::atoi(arguments[1]);
    compute(device);
    CUcontext other = nullptr;
    FAILS(cuDevicePrimaryCtxRetain(&other, devices), CUDA_ERROR_INVALID_DEVICE);
}
