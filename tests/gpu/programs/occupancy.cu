// Prints what the occupancy and function-attribute calls answer, for several kernels.
#include "program.h"

__global__ void light(float* data) { data[threadIdx.x] = 1; }
__global__ void __launch_bounds__(128, 4) bounded(float* data) {
    __shared__ float tile[2048];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = tile[127 - threadIdx.x] * tile[threadIdx.x];
}
__global__ void dynamic(float* data) {
    extern __shared__ float buffer[];
    buffer[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

Result result;

template <typename Kernel>
void show(const char* name, Kernel kernel) {
    cudaFuncAttributes facts = {};
    CHECK(cudaFuncGetAttributes(&facts, kernel));
    std::printf(
        "%s: shared %zu, constant %zu, local %zu, threads %d, registers %d, ptx %d, binary %d, dynamic %d, "
        "carveout %d\n",
        name, facts.sharedSizeBytes, facts.constSizeBytes, facts.localSizeBytes, facts.maxThreadsPerBlock,
        facts.numRegs, facts.ptxVersion, facts.binaryVersion, facts.maxDynamicSharedSizeBytes,
        facts.preferredShmemCarveout);
    for (int threads : {32, 128, 256, 1024}) {
        for (int shared : {0, 1000, 16 << 10, 48 << 10}) {
            int blocks = -1;
            const cudaError_t status =
                cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared);
            std::printf("%s: %d threads, %d bytes: %d blocks (%s)\n", name, threads, shared, blocks,
                        cudaGetErrorName(status));
            cudaGetLastError();
            result.fold(blocks);
        }
    }
    int grid = 0, block = 0;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 0));
    size_t available = 0;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&available, kernel, 2, 128));
    std::printf("%s: best block %d, grid %d, shared memory left %zu\n", name, block, grid, available);
    result.fold(grid);
    result.fold(block);
}

int main() {
    show("light", light);
    show("bounded", bounded);
    show("dynamic", dynamic);
    CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared));
    int blocks = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 256, 200 << 10));
    std::printf("200 KiB of shared memory: %d blocks\n", blocks);
    show("dynamic, changed", dynamic);
    // The attribute holds for launches, too.
    float *data, host[256];
    for (int i = 0; i < 256; ++i) host[i] = static_cast<float>(i);
    CHECK(cudaMalloc(&data, sizeof host));
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    dynamic<<<1, 256, 200 << 10>>>(data);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    result.expect(host[0] == 255 && host[255] == 0, "launch with 200 KiB of shared memory");
    result.fold(host);
    return result.finish();
}
