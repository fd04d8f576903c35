// Kernels as programs write them, compiled by nvcc for compiled_test.cpp: optimised, and once more with
// -G, which keeps every variable in local memory.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[16][16], tb[16][17];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        ta[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void reduce(const int* values, int count, int* total) {
    extern __shared__ int partial[];
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        sum += values[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
        if (threadIdx.x == 0) atomicAdd(total, sum);
    }
}

extern "C" __global__ void tell(int n, const char* word) {
    if (threadIdx.x < 2)
        printf("%d %5.2f [%-4s] %c %lld %u %x %%\n", n + (int)threadIdx.x, n * 1.5, word, 'a' + threadIdx.x,
               -5000000000ll, 4000000000u, 0xbeef);
    if (threadIdx.x == 0) printf("no arguments\n");
}

extern "C" __global__ void check(int limit) { assert((int)threadIdx.x < limit && "too many"); }
extern "C" __global__ void trap_at(int thread) {
    if ((int)threadIdx.x == thread) __trap();
}

// Each thread's list, on the device heap.
extern "C" __global__ void lists(int* sums) {
    struct Node {
        Node* next;
        int value;
    };
    Node* head = nullptr;
    for (int i = 0; i <= (int)threadIdx.x; ++i) {
        auto* node = (Node*)malloc(sizeof(Node));
        node->next = head;
        node->value = i;
        head = node;
    }
    int sum = 0;
    while (head != nullptr) {
        Node* next = head->next;
        sum += head->value;
        free(head);
        head = next;
    }
    sums[threadIdx.x] = sum;
}

struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
    float radius;
    __device__ explicit Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
};

extern "C" __global__ void areas(float* out) {
    Square square(threadIdx.x);
    Circle circle(threadIdx.x);
    const Shape* shape = threadIdx.x % 3 == 0 ? (const Shape*)&square : &circle;
    out[threadIdx.x] = shape->area();
}

__device__ __noinline__ int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void recursive(int* out) {
    out[threadIdx.x] = ackermann(threadIdx.x % 3, threadIdx.x % 7);
}

extern "C" __global__ void functions(const double* in, double* out, int n) {
    const double x = in[threadIdx.x];
    double* mine = out + 12 * threadIdx.x;
    mine[0] = sin(x), mine[1] = cos(x), mine[2] = exp(x), mine[3] = log(fabs(x) + 0.5),
    mine[4] = pow(fabs(x), 1.7), mine[5] = sqrt(fabs(x));
    mine[6] = sinf((float)x), mine[7] = expf((float)x), mine[8] = logf(fabsf((float)x) + 0.5f),
    mine[9] = powf(fabsf((float)x), 1.7f);
    mine[10] = tanh(x), mine[11] = erff((float)x);
    (void)n;
}

__constant__ int digits[10];
__device__ int counter = 40;
extern "C" __global__ void symbols(int* out) {
    out[threadIdx.x] = digits[threadIdx.x % 10] + atomicAdd(&counter, 0);
}

struct Big {
    int values[40];
    double scale;
};
extern "C" __global__ void by_value(const __grid_constant__ Big big, double* out) {
    out[threadIdx.x] = big.values[threadIdx.x] * big.scale;
}

extern "C" __global__ void halves(const float* in, float* out) {
    const __half a = __float2half(in[threadIdx.x]);
    const __half2 pair = __halves2half2(a, __float2half(1.5f));
    const __half2 product = __hfma2(pair, pair, __float2half2_rn(0.25f));
    const __nv_bfloat16 b = __float2bfloat16(in[threadIdx.x]);
    out[3 * threadIdx.x] = __low2float(product);
    out[3 * threadIdx.x + 1] = __high2float(product);
    out[3 * threadIdx.x + 2] = __bfloat162float(__hadd(b, b));
}

extern "C" __global__ void groups(int* out) {
    const auto block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<8>(block);
    int sum = threadIdx.x;
    for (int i = tile.size() / 2; i > 0; i /= 2) sum += tile.shfl_xor(sum, i);
    block.sync();
    if (threadIdx.x % 2 == 0) {
        const auto active = cg::coalesced_threads();
        sum += 1000 * active.size() + active.thread_rank();
    }
    out[threadIdx.x] = sum;
}

// A local array with an index known at run time only.
extern "C" __global__ void sort_local(const int* in, int* out) {
    int values[32];
    for (int i = 0; i < 32; ++i) values[i] = in[(i * 7 + threadIdx.x) % 32];
    for (int i = 1; i < 32; ++i)
        for (int k = i; k > 0 && values[k - 1] > values[k]; --k) {
            const int swap = values[k];
            values[k] = values[k - 1];
            values[k - 1] = swap;
        }
    out[threadIdx.x] = values[threadIdx.x];
}

extern "C" __global__ void out_of_bounds(int* values, int index) { values[threadIdx.x == 5 ? index : 0] = 1; }

// Early return of some threads before a barrier that the others reach.
extern "C" __global__ void early(int* out, int limit) {
    __shared__ int seen;
    if (threadIdx.x == 0) seen = 0;
    __syncthreads();
    if ((int)threadIdx.x >= limit) return;
    atomicAdd(&seen, 1);
    __syncthreads();
    out[threadIdx.x] = seen;
}
