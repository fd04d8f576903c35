// Prints what the device says of itself: smt must not change it.
#include "program.h"

int main() {
    Result result;
    int count = 0, driver = 0, runtime = 0, device = -1, least = 0, greatest = 0;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    std::printf("devices %d, driver %d, runtime %d, current %d, priorities %d %d\n", count, driver, runtime, device, least, greatest);
    cudaDeviceProp properties = {};
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("%s, sm_%d%d, %d SMs, %zu bytes, L2 %d, bus %d:%d:%d\nuuid ", properties.name, properties.major,
                properties.minor, properties.multiProcessorCount, properties.totalGlobalMem, properties.l2CacheSize,
                properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
    for (char byte : properties.uuid.bytes) std::printf("%02x", static_cast<unsigned char>(byte));
    std::printf("\n");
    char bus[32] = {};
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    CHECK(cudaDeviceGetByPCIBusId(&device, bus));
    std::printf("%s is device %d\n", bus, device);
    for (int attribute = 1; attribute <= 160; ++attribute) {
        int value = 0;
        const cudaError_t status = cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(attribute), 0);
        if (status == cudaSuccess) std::printf("attribute %d: %d\n", attribute, value);
        cudaGetLastError();
        result.fold(value);
    }
    for (int limit = 0; limit <= 6; ++limit) {
        size_t value = 0;
        const cudaError_t status = cudaDeviceGetLimit(&value, static_cast<cudaLimit>(limit));
        std::printf("limit %d: %zu (%d)\n", limit, value, status);
        cudaGetLastError();
    }
    unsigned flags = 0;
    cudaFuncCache cache;
    CHECK(cudaGetDeviceFlags(&flags));
    CHECK(cudaDeviceGetCacheConfig(&cache));
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    std::printf("flags %u, cache %d, total memory %zu\n", flags, cache, total);
    result.expect(free > 0 && free <= total, "free memory");
    return result.finish();
}
