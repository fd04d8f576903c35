// Do blocks of two kernels share a multiprocessor that has room for both, whatever part of its memory each
// wants set aside as shared memory?
//
//     nvcc -std=c++20 -O2 -arch=sm_90 -o carveout carveout.cu && ./carveout
//
// `hold` has two blocks on every multiprocessor for some milliseconds, with room for three more; then `visit`
// comes, with sixteen blocks, on a stream of higher priority. One JSON row for each pair of carve-outs
// (percent of what a multiprocessor has; -1: the driver's own choice) and of visit's dynamic shared memory:
// how long until visit is over, in us. What waits for hold's end takes milliseconds.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define CHECK(call)                                                                   \
    do {                                                                              \
        const cudaError_t status_ = (call);                                           \
        if (status_ != cudaSuccess) {                                                 \
            std::printf("{\"error\": \"%s:%d %s: %s\"}\n", __FILE__, __LINE__, #call, \
                        cudaGetErrorName(status_));                                   \
            std::exit(1);                                                             \
        }                                                                             \
    } while (0)

__device__ void spin(unsigned long long ns) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

__global__ void __launch_bounds__(384) hold(unsigned long long ns) {
    __shared__ volatile int word[12];
    word[threadIdx.x % 12] = 1;
    spin(ns);
}

__global__ void __launch_bounds__(256) visit(unsigned long long ns) {
    __shared__ volatile int word[12];
    word[threadIdx.x % 12] = 1;
    spin(ns);
}

int main() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    cudaStream_t low, high;
    int least = 0, greatest = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    CHECK(cudaFuncSetAttribute(visit, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    const int hints[] = {-1, 3, 7, 14, 28, 43, 100};
    for (const int held : hints) {
        for (const int visiting : hints) {
            for (const int bytes : {0, 12 << 10}) {
                CHECK(cudaFuncSetAttribute(hold, cudaFuncAttributePreferredSharedMemoryCarveout, held));
                CHECK(cudaFuncSetAttribute(visit, cudaFuncAttributePreferredSharedMemoryCarveout, visiting));
                std::vector<double> us;
                for (int turn = 0; turn < 6; ++turn) {
                    hold<<<2 * properties.multiProcessorCount, 384, 0, low>>>(4'000'000);
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    const auto begin = std::chrono::steady_clock::now();
                    visit<<<16, 256, bytes, high>>>(20'000);
                    CHECK(cudaStreamSynchronize(high));
                    us.push_back(
                        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                            .count());
                    CHECK(cudaDeviceSynchronize());
                }
                us.erase(us.begin());  // it is loaded then
                std::sort(us.begin(), us.end());
                std::printf(
                    "{\"hold\": %d, \"visit\": %d, \"visit_bytes\": %d, \"us\": [%.0f, %.0f, %.0f]}\n", held,
                    visiting, bytes, us.front(), us[us.size() / 2], us.back());
            }
        }
    }
    std::printf("{\"device\": \"%s\", \"shared_per_sm\": %zu}\n", properties.name,
                properties.sharedMemPerMultiprocessor);
}
