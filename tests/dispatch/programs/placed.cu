// A launch whose workers run the blocks of their own index, as a stop finds it at each moment: all of its
// blocks run, or none. The control block is set to what it would be then; prints a line for each moment.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "smt_worker.h"

namespace {

constexpr unsigned kBlocks = 12, kId = 5, kNo = 2 * kId + 2, kYes = kNo + 1;
constexpr unsigned long long kStop = static_cast<unsigned long long>(smt::kStopBit | 1) << 32;

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::printf("%s\n", cudaGetErrorString(status));
    std::exit(3);
}

__global__ void count(unsigned* runs, smt::Launch launch) {
    smt::Worker worker(launch);
    while (worker.next())
        if (threadIdx.x == 0) atomicAdd(&runs[worker.block().y * worker.grid().x + worker.block().x], 1u);
}

struct Moment {
    const char* name;
    unsigned long long word;  // when the workers begin
    unsigned verdict;
    unsigned workers;  // that have not begun yet; those with the first tickets have
};

int run(const Moment& moment, smt::Control* control, unsigned* runs) {
    smt::Control state{};
    state.word = moment.word;
    state.verdict = moment.verdict;
    check(cudaMemcpy(control, &state, sizeof state, cudaMemcpyDefault));
    check(cudaMemset(runs, 0, kBlocks * sizeof *runs));
    smt::Launch launch{};
    launch.control = control;
    launch.start = 100;
    launch.total = launch.tickets = kBlocks;
    launch.grid[0] = 4, launch.grid[1] = 3, launch.grid[2] = 1;
    launch.flags = smt::kSingle | smt::kPlaced;
    launch.id = kId;
    launch.chunk = 1;
    count<<<moment.workers, 64>>>(runs, launch);
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(&state, control, sizeof state, cudaMemcpyDefault));
    std::vector<unsigned> found(kBlocks);
    check(cudaMemcpy(found.data(), runs, kBlocks * sizeof *runs, cudaMemcpyDefault));
    std::printf("%s: runs", moment.name);
    for (unsigned each : found) std::printf(" %u", each);
    std::printf(", taken %u, refused %u, verdict %s\n", static_cast<unsigned>(state.word), state.refused,
                state.verdict == kYes  ? "yes"
                : state.verdict == kNo ? "no"
                                       : "none");
    return 0;
}

}  // namespace

int main() {
    smt::Control* control = nullptr;
    unsigned* runs = nullptr;
    check(cudaMalloc(&control, sizeof *control));
    check(cudaMalloc(&runs, kBlocks * sizeof *runs));
    const Moment moments[] = {
        {"no stop", 100, 0, kBlocks},
        {"ahead of the first", kStop | 100, 0, kBlocks},
        {"ahead of the first, another launch had begun", kStop | 100, kYes - 2, kBlocks},
        {"behind a launch that was stopped", kStop | 50, 0,
         kBlocks},  // which has left tickets: no worker draws the first
        {"behind one that has left three", kStop | 97, 0, kBlocks},
        {"behind the first four", kStop | 104, kYes, kBlocks - 4},
        {"behind none, the first have left", kStop | 104, kNo, kBlocks - 4},
    };
    for (const Moment& moment : moments) run(moment, control, runs);
    return 0;
}
