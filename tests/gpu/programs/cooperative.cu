// A cooperative launch: every block waits for the whole grid, many times.
#include <cooperative_groups.h>

#include <vector>

#include "program.h"

namespace groups = cooperative_groups;

constexpr int kBlocks = 64, kThreads = 128, kCount = kBlocks * kThreads;

// Each round every element becomes the sum of its neighbours' values of the round before.
__global__ void diffuse(unsigned* even, unsigned* odd, int rounds) {
    const auto grid = groups::this_grid();
    const int i = static_cast<int>(grid.thread_rank());
    for (int round = 0; round < rounds; ++round) {
        const unsigned* from = round % 2 ? odd : even;
        unsigned* to = round % 2 ? even : odd;
        to[i] = from[(i + kCount - 1) % kCount] + from[i] * 3 + from[(i + 129) % kCount];
        grid.sync();
    }
}

int main() {
    Result result;
    int supported = 0, per_sm = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, diffuse, kThreads, 0));
    std::printf("cooperative %d, blocks per SM %d\n", supported, per_sm);

    std::vector<unsigned> start(kCount), now, next(kCount), back(kCount);
    for (int i = 0; i < kCount; ++i) start[i] = i * 2654435761u;
    unsigned *even, *odd;
    CHECK(cudaMalloc(&even, kCount * sizeof(unsigned)));
    CHECK(cudaMalloc(&odd, kCount * sizeof(unsigned)));
    for (int rounds : {1, 20, 100}) {
        CHECK(cudaMemcpy(even, start.data(), kCount * sizeof(unsigned), cudaMemcpyHostToDevice));
        void* arguments[] = {&even, &odd, &rounds};
        CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(diffuse), dim3(kBlocks), dim3(kThreads),
                                          arguments, 0, 0));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(back.data(), rounds % 2 ? odd : even, kCount * sizeof(unsigned),
                         cudaMemcpyDeviceToHost));
        now = start;
        for (int round = 0; round < rounds; ++round) {
            for (int i = 0; i < kCount; ++i)
                next[i] = now[(i + kCount - 1) % kCount] + now[i] * 3 + now[(i + 129) % kCount];
            now.swap(next);
        }
        std::printf("%d rounds: %08x\n", rounds, back[17]);
        result.expect(back == now, "rounds");
        result.fold(back.data(), kCount * sizeof(unsigned));
    }
    int rounds = 1;
    void* arguments[] = {&even, &odd, &rounds};
    std::printf("too large a grid: %s\n",
                cudaGetErrorName(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(diffuse), dim3(1 << 20),
                                                             dim3(kThreads), arguments, 0, 0)));
    cudaGetLastError();
    return result.finish();
}
