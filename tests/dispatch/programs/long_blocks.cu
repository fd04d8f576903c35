// Kernels with long loops, to be stopped inside their blocks: long_blocks [ROUNDS [PART]], with PART only so
// large a part of the blocks or of their length. Each checks what it finds.
//
// Of four kernels, one for each kind of check (rewriter/ptx/persistent/inside.h), blocks may be begun anew;
// of their twins they may not: one works in place, one counts with atomics, in one threads exit while others
// wait at a barrier, one is given memory that it reads to write to. A block writes at its end, over what no
// block writes: what was lost shows.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

constexpr unsigned kThreads = 64, kPoison = 0xdeadbeef, kLong = 100, kShort = 6;

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::printf("%s\n", cudaGetErrorString(status));
    std::exit(3);
}

__host__ __device__ unsigned mixed(unsigned value, unsigned more) { return value * 1664525u + more; }

__global__ void alone(const unsigned* from, unsigned* to, unsigned size, unsigned rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = i;
#pragma unroll 1
    for (unsigned k = 0; k < rounds + i % 3; ++k) value = mixed(value, from[(i + k) % size]);
    to[i] = value;
}

__global__ void barriers(const unsigned* from, unsigned* to, unsigned size, unsigned rounds) {
    __shared__ unsigned tile[kThreads];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = i;
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) {
        tile[threadIdx.x] = from[(i + k) % size];
        __syncthreads();
        value = mixed(value, tile[(threadIdx.x + 1) % kThreads]);
        __syncthreads();
    }
    to[i] = value;
}

__global__ void meeting(const unsigned* from, unsigned* to, unsigned size, unsigned rounds) {
    __shared__ unsigned sums[kThreads];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll 1
    for (unsigned k = threadIdx.x % 5; k < rounds; ++k)
        atomicAdd(&sums[(threadIdx.x + k) % kThreads], from[(blockIdx.x + k) % size]);
    __syncthreads();
    to[i] = sums[kThreads - 1 - threadIdx.x];
}

// One block a worker: threads leave ahead of a barrier.
__global__ void early(const unsigned* from, unsigned* to, unsigned size, unsigned rounds) {
    __shared__ unsigned tile[kThreads];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = i;
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) {
#pragma unroll 1
        for (unsigned j = 0; j <= threadIdx.x % 3; ++j) value = mixed(value, from[(i + k + j) % size]);
        tile[threadIdx.x] = value;
        __syncthreads();
        value = mixed(value, tile[threadIdx.x ^ 1]);
        __syncthreads();
    }
    to[i] = value;
    if (from[threadIdx.x % size] == kPoison) return;
    __syncthreads();
    to[i] = mixed(value, tile[threadIdx.x]);
}

// The first warp exits, and thereby opens the barrier for the others.
__global__ void producers(const unsigned* from, unsigned* to, unsigned size, unsigned rounds) {
    __shared__ unsigned tile[kThreads];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < kThreads / 2) {
        unsigned value = i;
#pragma unroll 1
        for (unsigned k = 0; k < rounds; ++k) value = mixed(value, from[(i + k) % size]);
        tile[threadIdx.x] = value % kThreads;
        tile[threadIdx.x + kThreads / 2] = value / kThreads % kThreads;
        to[i] = value;
        return;
    }
    __syncthreads();
    unsigned value = i;
#pragma unroll 1
    for (unsigned k = 0; k < kThreads; ++k) value = mixed(value, tile[tile[k]]);
    to[i] = value;
}

__global__ void in_place(unsigned* data, unsigned rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) {
        data[i] = mixed(data[i], k);
        __threadfence_block();
    }
}

__global__ void written_back(unsigned* data, unsigned rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) data[i] += k;
}

__global__ void atomics(unsigned* data, unsigned rounds) {
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) atomicAdd(&data[blockIdx.x * blockDim.x + threadIdx.x], k);
}

using Kernel = void (*)(const unsigned*, unsigned*, unsigned, unsigned);

class Program {
public:
    explicit Program(unsigned blocks) : blocks_(blocks), count_(blocks * kThreads), input_(count_) {
        for (unsigned i = 0; i < count_; ++i) input_[i] = mixed(i, 12345);
        check(cudaMalloc(&memory_, 2 * count_ * sizeof(unsigned)));
        check(cudaMalloc(&from_, count_ * sizeof(unsigned)));
        check(cudaMemcpy(from_, input_.data(), count_ * sizeof(unsigned), cudaMemcpyDefault));
    }
    ~Program() { cudaFree(memory_), cudaFree(from_); }

    // Undisturbed it gives this: the first run's, and later ones must be the same.
    void run(const char* name, Kernel kernel, unsigned rounds, bool in_one_memory) {
        const std::vector<unsigned> poison(count_, kPoison);
        unsigned* const to = memory_ + (in_one_memory ? count_ : 0);
        const unsigned* from = from_;
        if (in_one_memory) {
            check(cudaMemcpy(memory_, input_.data(), count_ * sizeof(unsigned), cudaMemcpyDefault));
            from = memory_;
        }
        check(cudaMemcpy(to, poison.data(), count_ * sizeof(unsigned), cudaMemcpyDefault));
        kernel<<<blocks_, kThreads>>>(from, to, count_, rounds);
        finish(name, to);
    }
    void run(const char* name, void (*kernel)(unsigned*, unsigned), unsigned rounds) {
        check(cudaMemcpy(memory_, input_.data(), count_ * sizeof(unsigned), cudaMemcpyDefault));
        kernel<<<blocks_, kThreads>>>(memory_, rounds);
        finish(name, memory_);
    }

private:
    void finish(const char* name, const unsigned* result) {
        check(cudaDeviceSynchronize());
        std::vector<unsigned> found(count_);
        check(cudaMemcpy(found.data(), result, count_ * sizeof(unsigned), cudaMemcpyDefault));
        unsigned long long sum = 0;
        unsigned left = 0;
        for (unsigned each : found) sum = sum * 31 + each, left += each == kPoison;
        std::printf("%s of %u blocks: %016llx, %u not written\n", name, blocks_, sum, left);
    }

    const unsigned blocks_, count_;
    std::vector<unsigned> input_;
    unsigned *memory_ = nullptr, *from_ = nullptr;
};

}  // namespace

int main(int count, char** arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 1;
    const unsigned part = count > 2 ? std::atoi(arguments[2]) : 1;
    for (const auto& [blocks, length] : {std::pair{12u, kLong / part}, std::pair{200u / part, kShort}}) {
        Program program(blocks);
        for (int round = 0; round < rounds; ++round) {
            program.run("alone", alone, length * 4, false);
            program.run("barriers", barriers, length, false);
            program.run("meeting", meeting, length, false);
            program.run("early", early, length, false);
            program.run("producers", producers, length * 4, false);
            program.run("alone in one memory", alone, length, true);
            program.run("in place", written_back, length);
            program.run("in place with fences", in_place, length);
            program.run("atomics", atomics, length);
        }
    }
    return 0;
}
