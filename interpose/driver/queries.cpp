#include "interpose/driver/queries.h"

#include <stdio.h>
#include <string.h>

#include "interpose/process/real_driver.h"
#include "interpose/process/visible_gpus.h"
#include "interpose/transport/device_facts.h"
#include "runtime/protocol/simulated_gpus.h"

namespace smt::interpose {

namespace simulated {

namespace {

using protocol::DeviceReply;

constexpr size_t kBusIdBytes = 16;

CUresult count_devices(int* count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = simulated_gpus();
    return CUDA_SUCCESS;
}

CUresult get_device(CUdevice* device, int ordinal) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (simulated_gpu(ordinal) < 0) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult get_uuid(CUuuid* uuid, CUdevice device) {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    if (simulated_gpu(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    protocol::write_simulated_uuid(simulated_gpu(device), uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult get_bus_id(char* id, int bytes, CUdevice device) {
    if (!id || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (simulated_gpu(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    protocol::write_simulated_bus_id(simulated_gpu(device), id, static_cast<size_t>(bytes));
    return CUDA_SUCCESS;
}

CUresult get_by_bus_id(CUdevice* device, const char* id) {
    if (!device || !id) return CUDA_ERROR_INVALID_VALUE;
    for (CUdevice each = 0; each < simulated_gpus(); ++each) {
        char text[kBusIdBytes];
        protocol::write_simulated_bus_id(simulated_gpu(each), text, sizeof text);
        if (strcmp(text, id) == 0) return *device = each, CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult get_name(char* name, int bytes, CUdevice device) {
    if (!name || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = CUDA_SUCCESS;
    const DeviceReply* facts = device_facts(device, status);
    if (facts)
        snprintf(name, static_cast<size_t>(bytes), "%.*s", static_cast<int>(sizeof facts->name), facts->name);
    return status;
}

CUresult get_memory(size_t* total, CUdevice device) {
    if (!total) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = CUDA_SUCCESS;
    if (const DeviceReply* facts = device_facts(device, status)) *total = facts->total_bytes;
    return status;
}

CUresult get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    static_assert(CU_DEVICE_ATTRIBUTE_MAX <= protocol::kDeviceAttributes);
    if (!value || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = CUDA_SUCCESS;
    if (const DeviceReply* facts = device_facts(device, status)) *value = facts->attributes[attribute];
    return status;
}

CUresult get_capability(int* major, int* minor, CUdevice device) {
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    const CUresult status = get_attribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (status != CUDA_SUCCESS) return status;
    return get_attribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CUresult two_devices(int* value, CUdevice one, CUdevice other) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (simulated_gpu(one) < 0 || simulated_gpu(other) < 0) return CUDA_ERROR_INVALID_DEVICE;
    *value = 0;
    return CUDA_SUCCESS;
}

CUresult can_access(int* can, CUdevice one, CUdevice other) {
    const CUresult status = two_devices(can, one, other);
    if (status == CUDA_SUCCESS) *can = one != other;
    return status;
}

// All accesses are processors' accesses to memory that two servers have mapped.
CUresult get_peer_attribute(int* value, CUdevice_P2PAttribute attribute, CUdevice one, CUdevice other) {
    if (one == other) return CUDA_ERROR_INVALID_DEVICE;
    const CUresult status = two_devices(value, one, other);
    if (status == CUDA_SUCCESS) *value = attribute != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK;
    return status;
}

constexpr DriverApi make_driver() {
    DriverApi api{};
    api.cuDeviceGetCount = count_devices;
    api.cuDeviceGet = get_device;
    api.cuDeviceGetUuid = get_uuid;
    api.cuDeviceGetUuid_v2 = get_uuid;
    api.cuDeviceGetPCIBusId = get_bus_id;
    api.cuDeviceGetByPCIBusId = get_by_bus_id;
    api.cuDeviceGetName = get_name;
    api.cuDeviceTotalMem_v2 = get_memory;
    api.cuDeviceGetAttribute = get_attribute;
    api.cuDeviceComputeCapability = get_capability;
    api.cuDeviceCanAccessPeer = can_access;
    api.cuDeviceGetP2PAttribute = get_peer_attribute;
    return api;
}

constexpr DriverApi kDriver = make_driver();

}  // namespace

}  // namespace simulated

const DriverApi* query_driver() { return simulated_gpus() > 1 ? &simulated::kDriver : real_driver(); }

bool device_exists(CUdevice device) {
    const DriverApi* driver = query_driver();
    CUdevice found = 0;
    return driver && driver->cuDeviceGet && driver->cuDeviceGet(&found, device) == CUDA_SUCCESS;
}

}  // namespace smt::interpose
