// Which ticket is taken back where threads leave a block before its end: for launches from anywhere in a
// grid, with tickets of one block or several, placed ones, and each worker that has checks. Half of a block's
// threads leave, the others come to the block's end. Prints a line for each.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "smt_worker.h"

namespace {

constexpr unsigned long long kStop = static_cast<unsigned long long>(smt::kStopInside | 1) << 32;

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::printf("%s\n", cudaGetErrorString(status));
    std::exit(3);
}

// Whether this thread leaves the block; then the stop is there, as it has seen it.
__device__ bool leaves(const smt::Launch& launch, uint3 block, unsigned first) {
    const unsigned index = (block.z * launch.grid[1] + block.y) * launch.grid[0] + block.x;
    if (index < first || threadIdx.x % 2 == 0) return false;
    atomicOr(&launch.control->word, kStop);
    return true;
}

template <typename Worker>
__global__ void loop(unsigned first, smt::Launch launch) {
    Worker worker(launch);
    while (worker.next())
        if (leaves(launch, worker.block(), first)) worker.abandon();
}

__global__ void once(unsigned first, smt::Launch launch) {
    smt::AbandoningSingleWorker worker(launch);
    if (!worker.next()) return;
    if (leaves(launch, worker.block(), first)) worker.abandon();
    smt::depart(launch);
}

struct Moment {
    const char* name;
    unsigned first;      // block from which on threads leave
    unsigned origin[3];  // of the launch
    unsigned total, chunk;
    unsigned flags = 0, workers = 1;
};

void run(const char* kind, void (*kernel)(unsigned, smt::Launch), const Moment& moment,
         smt::Control* control) {
    smt::Control state{};
    state.word = 100;
    check(cudaMemcpy(control, &state, sizeof state, cudaMemcpyDefault));
    smt::Launch launch{};
    launch.control = control;
    launch.start = 100;
    for (int i = 0; i < 3; ++i) launch.origin[i] = moment.origin[i];
    launch.total = moment.total;
    launch.grid[0] = 4, launch.grid[1] = 3, launch.grid[2] = 2;
    launch.flags = moment.flags;
    launch.chunk = moment.chunk;
    launch.tickets = (moment.total + moment.chunk - 1) / moment.chunk;
    kernel<<<moment.workers, 64>>>(moment.first, launch);
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(&state, control, sizeof state, cudaMemcpyDefault));
    std::printf("%s, %s: taken %u, refused %u, taken back from ", kind, moment.name,
                static_cast<unsigned>(state.word), state.refused);
    state.abandoned ? std::printf("%u\n", ~state.abandoned) : std::printf("none\n");
}

}  // namespace

int main() {
    smt::Control* control = nullptr;
    check(cudaMalloc(&control, sizeof *control));
    const Moment moments[] = {
        {"no thread leaves", 99, {0, 0, 0}, 24, 1},
        {"the first block", 0, {0, 0, 0}, 24, 1},
        {"the sixth", 5, {0, 0, 0}, 24, 1},
        {"the sixth, of tickets of three", 5, {0, 0, 0}, 24, 3},
        {"a later row and plane", 20, {2, 1, 0}, 18, 1},
        {"likewise, of tickets of four", 20, {2, 1, 0}, 18, 4},
        {"the last", 23, {0, 0, 1}, 12, 1},
    };
    for (const Moment& moment : moments) {
        run("blocks apart", loop<smt::AbandoningWorker>, moment, control);
        run("blocks free", loop<smt::AbandoningFreeWorker>, moment, control);
    }
    const Moment placed{"placed", 20, {0, 0, 0}, 24, 1, smt::kSingle | smt::kPlaced, 24};
    run("blocks apart", loop<smt::AbandoningWorker>, placed, control);
    run("one block", once, placed, control);
    run("one block", once, {"the tenth", 9, {0, 0, 0}, 24, 1, smt::kSingle, 10}, control);
    return 0;
}
