// What a device says it can do while smt serves it.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "interpose/driver/device.h"

namespace smt::interpose {
namespace {

int answer(CUdevice_attribute attribute, CUresult status = CUDA_SUCCESS) {
    int value = 1;  // the driver's own
    CHECK(adjust::cuDeviceGetAttribute(status, &value, attribute, 0) == status);
    return value;
}

TEST_CASE("a device does not promise what is not served") {
    CHECK(answer(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) == 0);
    CHECK(answer(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0);  // cuMemGetHandleForAddressRange
    CHECK(answer(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) == 0);
    CHECK(answer(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0);  // cuMemCreate
    CHECK(answer(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED) == 0);               // cuMemPoolCreate
    CHECK(answer(CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK) == 0);  // cuMemBatchDecompressAsync
}

TEST_CASE("other answers about a device are the driver's") {
    CHECK(answer(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1);
    CHECK(answer(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED) == 1);
    CHECK(answer(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 1);
    CHECK(answer(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, CUDA_ERROR_INVALID_DEVICE) == 1);
}

int peer_answer(CUdevice_P2PAttribute attribute) {
    int value = 1;
    CHECK(adjust::cuDeviceGetP2PAttribute(CUDA_SUCCESS, &value, attribute, 0, 1) == CUDA_SUCCESS);
    return value;
}

TEST_CASE(
    "whether devices reach each other's memory is the driver's answer, but for arrays and fenced tenants") {
    int can = 1;
    CHECK(adjust::cuDeviceCanAccessPeer(CUDA_SUCCESS, &can, 0, 1) == CUDA_SUCCESS);
    CHECK(can == 1);
    CHECK(peer_answer(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED) == 1);
    CHECK(peer_answer(CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED) == 0);
    setenv("SMT_ISOLATION", "fence", 1);
    CHECK(adjust::cuDeviceCanAccessPeer(CUDA_SUCCESS, &can, 0, 1) == CUDA_SUCCESS);
    CHECK(can == 0);
    CHECK(peer_answer(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED) == 0);
    unsetenv("SMT_ISOLATION");
    CHECK(adjust::cuDeviceCanAccessPeer(CUDA_ERROR_INVALID_DEVICE, nullptr, 0, 9) ==
          CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace
}  // namespace smt::interpose
