// Where a kernel learns which block it is.
#include "constructs.h"

using constructs::dawdle;
using constructs::mixed;

// ---- in functions

__device__ unsigned place() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ unsigned nested(unsigned more) { return place() + more * gridDim.x; }
__global__ void calls(unsigned* out) { atomicAdd(&out[place()], dawdle(nested(3))); }
void device_function(unsigned* out) { calls<<<90, 64>>>(out); }

__global__ void one(unsigned* out) { out[place()] += mixed(place()); }
__global__ void two(unsigned* out) { out[place()] += mixed(place() + 1); }
void shared_helper(unsigned* out) {
    one<<<70, 64>>>(out);
    two<<<110, 64>>>(out);
}

__device__ unsigned by_default(unsigned i = blockIdx.x, unsigned of = gridDim.x) { return i * of; }
__global__ void omits(unsigned* out) {
    atomicAdd(&out[blockIdx.x], by_default() + by_default(threadIdx.x) + dawdle(1));
}
void default_arguments(unsigned* out) { omits<<<80, 96>>>(out); }

// Behind a pointer: the index stands in shared memory for all threads.
__device__ unsigned row() { return blockIdx.x; }
__device__ unsigned rows() { return gridDim.x; }
__device__ unsigned (*const table[])() = {row, rows};
__global__ void by_pointer(unsigned* out, const unsigned* which) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 4; ++i) sum = sum * 31 + table[(threadIdx.x + i + which[0]) & 1]();
    atomicAdd(&out[row() * 64 + threadIdx.x % 64 + 1], dawdle(sum));
}
void indirect(unsigned* out) { by_pointer<<<100, 96>>>(out, out); }

// ---- in lambdas

__global__ void captures(unsigned* out) {
    auto defaults = [=](unsigned i) { return i + blockIdx.x; };
    auto references = [&](unsigned i) { return defaults(i) * gridDim.x; };
    auto listed = [out](unsigned i) { return i + blockIdx.x + (out == nullptr); };
    auto none = [] { return blockIdx.x * 7; };
    auto generic = [](auto i) { return [=] { return i + gridDim.x; }(); };
    atomicAdd(&out[blockIdx.x * 64 + threadIdx.x],
              dawdle(references(1) + listed(2) + none() + generic(threadIdx.x)));
}
void lambdas(unsigned* out) { captures<<<120, 64>>>(out); }

// ---- in macros, and in assembly

#define HERE (blockIdx.x * blockDim.x + threadIdx.x)
#define ADD(value) atomicAdd(&out[HERE], (value) + gridDim.x)
__global__ void by_macro(unsigned* out) { ADD(dawdle(HERE)); }
void macro(unsigned* out) { by_macro<<<130, 64>>>(out); }

__global__ void by_assembly(unsigned* out) {
    unsigned block, blocks;
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
    atomicAdd(&out[block * 64 + threadIdx.x], dawdle(block * 1000 + blocks));
}
void assembly(unsigned* out) { by_assembly<<<140, 64>>>(out); }

// ---- in one to three dimensions

__global__ void line(unsigned* out) { out[blockIdx.x] += gridDim.x * 3 + gridDim.y + gridDim.z; }
__global__ void plane(unsigned* out) {
    atomicAdd(&out[blockIdx.y * gridDim.x + blockIdx.x], dawdle(blockIdx.x * 100 + blockIdx.y) + gridDim.y);
}
__global__ void space(unsigned* out) {
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    atomicAdd(&out[block * 24 + thread], mixed(blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z) + gridDim.z);
}
void grid_1d(unsigned* out) { line<<<300, 1>>>(out); }
void grid_2d(unsigned* out) { plane<<<dim3(13, 17), 64>>>(out); }
void grid_3d(unsigned* out) { space<<<dim3(5, 7, 9), dim3(4, 3, 2)>>>(out); }

int main(int argc, char** argv) {
    return constructs::run(argc, argv,
                           {{"device_function", device_function},
                            {"shared_helper", shared_helper},
                            {"default_arguments", default_arguments},
                            {"indirect", indirect},
                            {"lambdas", lambdas},
                            {"macro", macro},
                            {"assembly", assembly},
                            {"grid_1d", grid_1d},
                            {"grid_2d", grid_2d},
                            {"grid_3d", grid_3d}});
}
