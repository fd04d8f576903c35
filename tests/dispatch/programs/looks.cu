// A worker that loses its place while it runs its second block, by whether it looks before it takes the next:
// prints a line for each way. The block itself writes the table, as the host would meanwhile.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "smt_worker.h"

namespace {

constexpr unsigned kBlocks = 4;

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::printf("%s\n", cudaGetErrorString(status));
    std::exit(3);
}

struct Change {
    const char* name;
    unsigned flags;             // besides kHeld
    unsigned char quota;        // on each multiprocessor; one before
    unsigned long long number;  // 0: the table is written, its number not yet
};

__global__ void work(unsigned* runs, unsigned char quota, unsigned long long number, smt::Launch launch) {
    smt::Worker worker(launch);
    while (worker.next()) {
        if (threadIdx.x != 0) continue;
        atomicAdd(&runs[worker.block().x], 1u);
        if (worker.block().x != 1) continue;
        for (unsigned sm = 0; sm < smt::kMaxSms; ++sm) launch.control->quota[sm] = quota;
        __threadfence();
        atomicAdd(&launch.control->word, number << 32);
    }
}

void run(const Change& change, smt::Control* control, unsigned* runs) {
    smt::Control state{};
    for (unsigned char& quota : state.quota) quota = 1;
    check(cudaMemcpy(control, &state, sizeof state, cudaMemcpyDefault));
    check(cudaMemset(runs, 0, kBlocks * sizeof *runs));
    smt::Launch launch{};
    launch.control = control;
    launch.total = launch.tickets = kBlocks;
    launch.grid[0] = kBlocks, launch.grid[1] = launch.grid[2] = 1;
    launch.flags = smt::kHeld | change.flags;
    launch.chunk = 1;
    work<<<1, 64>>>(runs, change.quota, change.number, launch);
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(&state, control, sizeof state, cudaMemcpyDefault));
    std::vector<unsigned> found(kBlocks);
    check(cudaMemcpy(found.data(), runs, kBlocks * sizeof *runs, cudaMemcpyDefault));
    unsigned resident = 0;
    for (unsigned each : state.resident) resident += each;
    std::printf("%s: runs", change.name);
    for (unsigned each : found) std::printf(" %u", each);
    std::printf(", taken %u, refused %u, resident %u\n", static_cast<unsigned>(state.word), state.refused,
                resident);
}

}  // namespace

int main() {
    smt::Control* control = nullptr;
    unsigned* runs = nullptr;
    check(cudaMalloc(&control, sizeof *control));
    check(cudaMalloc(&runs, kBlocks * sizeof *runs));
    const Change changes[] = {
        {"nothing changes", smt::kLooks, 1, 0},
        {"another table with its place", smt::kLooks, 2, 1},
        {"its place is gone", smt::kLooks, 0, 1},
        {"its place is gone, the number is late", smt::kLooks, 0, 0},
        {"its place is gone, and it does not look", 0, 0, 1},
        {"a stop", smt::kLooks, 1, smt::kStopBit | 1},
    };
    for (const Change& change : changes) run(change, control, runs);
    return 0;
}
