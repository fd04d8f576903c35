// Kernels of which door_check.cpp loads the machine code alone, unpatched and with the door in front of each
// CTA. None gives the same result if a CTA runs twice, or not at all.
#include <cstdint>
#include <cstdio>

#define INDEX (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * size_t{blockIdx.z}))
#define THREADS (blockDim.x * blockDim.y * blockDim.z)
#define THREAD (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))
#define PLACE (INDEX * THREADS + THREAD)

__device__ float work(float v, int iterations) {
    for (int i = 0; i < iterations; ++i) v = v * 1.0001f + 0.5f - v * v * 1e-6f;
    return v;
}

extern "C" {

__global__ void compute(float* out, const float* in, int n, int iterations) {
    const size_t i = PLACE;
    if (i < n) out[i] = out[i] * 0.5f + work(in[i], iterations);
}

__global__ void tiny(float* out, const float* in, int n, int) {
    const size_t i = PLACE;
    if (i < n) out[i] += in[i];
}

__global__ void shared_barriers(float* out, const float* in, int n, int iterations) {
    __shared__ float values[1024];
    const size_t i = PLACE;
    const unsigned t = THREAD, all = THREADS;
    values[t] = i < n ? in[i] : 0;
    for (int k = 0; k < iterations; ++k) {
        __syncthreads();
        const float next = values[(t + 7) % all];
        __syncthreads();
        values[t] = values[t] * 0.75f + next * 0.25f;
    }
    __syncthreads();
    if (i < n) out[i] = out[i] * 0.5f + values[all - 1 - t];
}

// Some warps wait at a barrier of their own.
__global__ void named_barriers(float* out, const float* in, int n, int iterations) {
    __shared__ float values[256];
    const size_t i = PLACE;
    const unsigned t = THREAD;
    values[t] = in[i % n];
    for (int k = 0; k < iterations; ++k) {
        if (t < 128)
            asm volatile("barrier.sync 1, 128;" ::: "memory");
        else
            asm volatile("barrier.sync 2, 128;" ::: "memory");
        const float next = values[t ^ 33];
        __syncthreads();
        values[t] = work(next, 3);
        __syncthreads();
    }
    if (i < n) out[i] = out[i] * 0.5f + values[t];
}

__global__ void dynamic_shared(float* out, const float* in, int n, int iterations) {
    extern __shared__ float room[];
    const size_t i = PLACE;
    const unsigned t = THREAD, all = THREADS;
    for (unsigned k = t; k < 12288; k += all) room[k] = in[k % n];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < iterations; ++k) sum += room[(t * 31 + k * 17) % 12288];
    if (i < n) out[i] = out[i] * 0.5f + sum;
}

__global__ void __launch_bounds__(128) all_registers(float* out, const float* in, int n, int iterations) {
    const size_t i = PLACE;
    float many[224];
#pragma unroll
    for (int k = 0; k < 224; ++k) many[k] = in[(i + k) % n];
    for (int round = 0; round < iterations; ++round) {
#pragma unroll
        for (int k = 0; k < 224; ++k) many[k] = many[k] * 0.99f + many[(k + 37) % 224] * 0.01f;
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 224; ++k) sum += many[k] * (k + 1);
    if (i < n) out[i] = out[i] * 0.5f + sum;
}

__global__ void __launch_bounds__(1024, 2) bounded(float* out, const float* in, int n, int iterations) {
    const size_t i = PLACE;
    float v[24];
#pragma unroll
    for (int k = 0; k < 24; ++k) v[k] = in[(i + k) % n];
    for (int round = 0; round < iterations; ++round)
#pragma unroll
        for (int k = 0; k < 24; ++k) v[k] = v[k] * 0.9f + v[(k + 5) % 24] * 0.1f;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 24; ++k) sum += v[k];
    if (i < n) out[i] = out[i] * 0.5f + sum;
}

// Fewer than ten registers: the prologue needs more than the kernel.
__global__ void few_registers(float* out, const float*, int n, int) {
    const size_t i = PLACE;
    if (i < n) out[i] = out[i] + 1;
}

__global__ void printing(float* out, const float* in, int n, int iterations) {
    const size_t i = PLACE;
    if (INDEX == 1 && THREAD == 0) printf("kernel printing: CTA 1 of %u\n", gridDim.x);
    if (i < n) out[i] = out[i] * 0.5f + work(in[i], iterations);
}

__device__ float global_out[1 << 20];
__global__ void no_parameters() {
    const size_t i = PLACE;
    if (i < 1 << 20) global_out[i] = global_out[i] * 0.5f + work(float(i & 1023), 2000);
}

struct Large {
    float values[988];
};
__global__ void large_parameters(float* out, const float* in, int n, int iterations,
                                 const __grid_constant__ Large large) {
    const size_t i = PLACE;
    if (i < n) out[i] = out[i] * 0.5f + work(in[i] + large.values[i % 988], iterations);
}

struct Largest {  // 4,096 bytes with the others
    float values[1018];
};
__global__ void largest_parameters(float* out, const float* in, int n, int iterations,
                                   const __grid_constant__ Largest large) {
    const size_t i = PLACE;
    if (i < n) out[i] = out[i] * 0.5f + work(in[i] + large.values[i % 1018], iterations);
}

struct Odd {
    char values[13];
};
__global__ void odd_parameters(float* out, const float* in, int n, int iterations, Odd odd) {
    const size_t i = PLACE;
    if (i < n) out[i] = out[i] * 0.5f + work(in[i] + odd.values[i % 13], iterations);
}

// Threads leave one by one; what is left of them goes on.
__global__ void early_return(float* out, const float* in, int n, int iterations) {
    const size_t i = PLACE;
    if (i >= n || (threadIdx.x & 3) == 3) return;
    out[i] = out[i] * 0.5f + work(in[i], iterations * int(1 + (threadIdx.x & 1)));
}

__noinline__ __device__ float deeper(float v, int depth) {
    return depth <= 0 ? v : deeper(v * 1.01f, depth - 1) + 1;
}
__global__ void calling(float* out, const float* in, int n, int iterations) {
    const size_t i = PLACE;
    if (i < n) out[i] = out[i] * 0.5f + deeper(work(in[i], iterations), int(i & 7));
}

__device__ long long gpu_now() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Says when each CTA began and ended. The lengths differ by up to a half.
__global__ void timed(longlong2* spans, float* out, int iterations) {
    const long long begin = gpu_now();
    out[PLACE] = work(float(INDEX & 1023), iterations + iterations / 8 * int(INDEX * 7 % 5));
    __syncthreads();
    if (THREAD == 0) spans[INDEX] = {begin, gpu_now()};
}

// Writes the time whenever the host asks: SameClock in door_stops.cpp.
struct Words {
    volatile int question;
    volatile long long time;
};
__global__ void answer(Words* words, int count) {
    for (int i = 1; i <= count; ++i) {
        while (words->question != i) {
        }
        words->time = gpu_now();
    }
}

// Each CTA waits for the one before it, as in a scan with decoupled look-back. The last one clears up.
__device__ volatile float carries[1 << 16];
__device__ volatile int carried[1 << 16];
__device__ unsigned finished;
__global__ void looks_back(float* out, const float* in, int n, int iterations) {
    const size_t i = PLACE;
    float v = in[i % n];
    for (int k = 0; k < iterations; ++k) v = v * 0.999f + 0.5f;
    __shared__ float before;
    if (threadIdx.x == 0) {
        while (blockIdx.x && carried[blockIdx.x - 1] == 0) {
        }
        __threadfence();
        before = blockIdx.x ? carries[blockIdx.x - 1] : 0;
        carries[blockIdx.x] = before * 0.5f + v;
        __threadfence();
        carried[blockIdx.x] = 1;
    }
    __syncthreads();
    if (i < n) out[i] = out[i] * 0.5f + v + before;
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(&finished, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += blockDim.x) carried[k] = 0;
    if (threadIdx.x == 0) finished = 0;
}

#if !defined(NO_CLUSTERS)
// Each CTA reads its neighbour's shared memory.
__global__ void __cluster_dims__(2, 1, 1) clustered(float* out, const float* in, int n, int iterations) {
    __shared__ float values[1024];
    const size_t i = PLACE;
    const unsigned t = THREAD;
    values[t] = work(in[i % n], iterations);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    uint32_t mine = static_cast<uint32_t>(__cvta_generic_to_shared(&values[t])), rank, other;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(mine), "r"(rank ^ 1));
    float theirs;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(theirs) : "r"(other) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (i < n) out[i] = out[i] * 0.5f + values[t] + theirs * 0.25f;
}

// Launched in clusters of the launch's choice; the sum goes over all of the cluster.
__global__ void any_cluster(float* out, const float* in, int n, int iterations) {
    __shared__ float value;
    const size_t i = PLACE;
    if (THREAD == 0) value = work(in[INDEX % n], iterations);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    uint32_t mine = static_cast<uint32_t>(__cvta_generic_to_shared(&value)), count;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    float sum = 0;
    for (uint32_t rank = 0; rank < count; ++rank) {
        uint32_t other;
        float theirs;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(mine), "r"(rank));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(theirs) : "r"(other) : "memory");
        sum += theirs;
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (i < n) out[i] = out[i] * 0.5f + sum;
}
#endif

}  // extern "C"
