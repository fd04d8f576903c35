// Launch attributes: thread-block clusters with distributed shared memory, priorities,
// programmatic serialization, cooperative as an attribute.
#include <cooperative_groups.h>

#include <vector>

#include "program.h"

namespace groups = cooperative_groups;

// Every block publishes its numbers in shared memory; the others of its cluster add them up.
__global__ void exchange(int* out) {
    __shared__ int mine[64];
    const auto cluster = groups::this_cluster();
    mine[threadIdx.x] = static_cast<int>(blockIdx.x * 1000 + threadIdx.x);
    cluster.sync();
    int sum = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank)
        sum += cluster.map_shared_rank(mine, rank)[threadIdx.x];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) fixed(int* out) {
    const auto cluster = groups::this_cluster();
    if (threadIdx.x == 0)
        out[blockIdx.x] = static_cast<int>(cluster.block_rank() * 10 + cluster.num_blocks());
}

__global__ void first(int* data) { data[threadIdx.x] = threadIdx.x; }
__global__ void second(int* data) {
    cudaGridDependencySynchronize();
    data[threadIdx.x] *= 3;
}

int main() {
    Result result;
    const int blocks = 32, threads = 64;
    int* device;
    std::vector<int> host(blocks * threads);
    CHECK(cudaMalloc(&device, host.size() * sizeof(int)));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks), config.blockDim = dim3(threads), config.stream = stream;
    config.attrs = attributes, config.numAttrs = 1;
    for (unsigned size : {1u, 2u, 4u, 8u}) {
        attributes[0].id = cudaLaunchAttributeClusterDimension;
        attributes[0].val.clusterDim = {size, 1, 1};
        int most = 0;
        CHECK(cudaOccupancyMaxPotentialClusterSize(&most, exchange, &config));
        CHECK(cudaLaunchKernelEx(&config, exchange, device));
        CHECK(
            cudaMemcpyAsync(host.data(), device, host.size() * sizeof(int), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        bool right = true;
        for (int block = 0; block < blocks; ++block)
            for (int thread = 0; thread < threads; ++thread) {
                int sum = 0;
                const int start = block / static_cast<int>(size) * static_cast<int>(size);
                for (int other = start; other < start + static_cast<int>(size); ++other)
                    sum += other * 1000 + thread;
                right &= host[block * threads + thread] == sum;
            }
        std::printf("cluster of %u: largest possible %d\n", size, most);
        result.expect(right, "cluster");
        result.fold(host.data(), host.size() * sizeof(int));
    }
    fixed<<<blocks, threads, 0, stream>>>(device);
    CHECK(cudaMemcpyAsync(host.data(), device, blocks * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int block = 0; block < blocks; ++block)
        result.expect(host[block] == block % 2 * 10 + 2, "fixed cluster");

    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {3, 1, 1};
    std::printf("grid no multiple of the cluster: %s\n",
                cudaGetErrorName(cudaLaunchKernelEx(&config, exchange, device)));
    cudaGetLastError();

    config.gridDim = dim3(1), config.numAttrs = 2;
    attributes[0].id = cudaLaunchAttributePriority;
    attributes[0].val.priority = -1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    for (int round = 0; round < 20; ++round) {
        first<<<1, threads, 0, stream>>>(device);
        CHECK(cudaLaunchKernelEx(&config, second, device));
    }
    CHECK(cudaMemcpyAsync(host.data(), device, threads * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < threads; ++i) result.expect(host[i] == i * 3, "programmatic serialization");

    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, first, device));
    CHECK(cudaMemcpyAsync(host.data(), device, threads * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    result.expect(host[63] == 63, "cooperative attribute");
    result.fold(host.data(), threads * sizeof(int));
    CHECK(cudaStreamDestroy(stream));
    return result.finish();
}
