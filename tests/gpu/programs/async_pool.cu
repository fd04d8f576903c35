// Stream-ordered memory: the default pool, a pool of one's own, its attributes, and reuse.
//
//     async_pool [TIMES]    that memory is reused
#include <cstdlib>
#include <vector>

#include "program.h"

constexpr int kCount = 1 << 16;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void fill(int* data, int value) {
    data[blockIdx.x * blockDim.x + threadIdx.x] = value + threadIdx.x;
}
__global__ void add(const int* from, int* to) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] += from[i];
}

int main(int count, char** arguments) {
    const int times = count > 1 ? std::atoi(arguments[1]) : 200;
    Result result;
    cudaStream_t stream, other;
    cudaEvent_t event;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&event));
    int supported = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    std::printf("pools supported: %d\n", supported);

    std::vector<int> host(kCount);
    int *total, *part;
    CHECK(cudaMallocAsync(&total, kBytes, stream));
    CHECK(cudaMemsetAsync(total, 0, kBytes, stream));
    for (int i = 0; i < times; ++i) {
        CHECK(cudaMallocAsync(&part, kBytes, stream));
        fill<<<kCount / 256, 256, 0, stream>>>(part, i);
        add<<<kCount / 256, 256, 0, stream>>>(part, total);
        CHECK(cudaFreeAsync(part, stream));
    }
    // Allocated in one stream, used and freed in another after an event.
    CHECK(cudaMallocAsync(&part, kBytes, stream));
    fill<<<kCount / 256, 256, 0, stream>>>(part, 1000);
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaStreamWaitEvent(other, event, 0));
    add<<<kCount / 256, 256, 0, other>>>(part, total);
    CHECK(cudaFreeAsync(part, other));
    CHECK(cudaMemcpyAsync(host.data(), total, kBytes, cudaMemcpyDeviceToHost, other));
    CHECK(cudaStreamSynchronize(other));
    bool right = true;
    const int sum = times * (times - 1) / 2 + 1000;
    for (int i = 0; i < kCount; ++i) right &= host[i] == sum + (times + 1) * (i % 256);
    result.expect(right, "default pool");
    result.fold(host.data(), kBytes);
    CHECK(cudaFreeAsync(total, stream));
    CHECK(cudaStreamSynchronize(stream));

    cudaMemPool_t pool;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t threshold = 64 << 20, read_back = 0;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read_back));
    std::printf("release threshold: %llu\n", static_cast<unsigned long long>(read_back));
    CHECK(cudaMemPoolTrimTo(pool, 0));

    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    cudaMemPool_t own;
    CHECK(cudaMemPoolCreate(&own, &properties));
    CHECK(cudaMallocFromPoolAsync(&part, kBytes, own, stream));
    fill<<<kCount / 256, 256, 0, stream>>>(part, 77);
    CHECK(cudaMemcpyAsync(host.data(), part, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(part, stream));
    CHECK(cudaStreamSynchronize(stream));
    result.expect(host[0] == 77 && host[kCount - 1] == 77 + 255, "own pool");
    CHECK(cudaMemPoolDestroy(own));

    // Freed with plain cudaFree, and a plain allocation freed in stream order.
    CHECK(cudaMallocAsync(&part, kBytes, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaFree(part));
    CHECK(cudaMalloc(&part, kBytes));
    CHECK(cudaFreeAsync(part, stream));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(other));
    result.fold(host.data(), kBytes);
    return result.finish();
}
