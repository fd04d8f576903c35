// Variables that can stand elsewhere; and with -DPOINTER, -DTAKEN and -DCONSTANT what keeps an image from it.
#include <cstdio>

__device__ int number = 3;
static __device__ float zeros[1000];
__constant__ float weights[16];

struct Base {
    __device__ virtual int value(int x) { return x; }
};
struct Derived : Base {
    int more;
    __device__ explicit Derived(int m) : more(m) {}
    __device__ int value(int x) override { return x + more; }
};
#ifdef POINTER
__device__ int* pointer = &number;
#endif
#ifdef TAKEN
__device__ const float* taken;
#endif

extern "C" __global__ void kernel(int* x, int n, Base** base) {
    static __device__ int calls;
    atomicAdd(&calls, 1);
    atomicAdd(&number, n);
    zeros[threadIdx.x] += static_cast<float>(n);
    printf("call %d\n", calls);
    *base = n & 1 ? new Base : new Derived(n);
    x[threadIdx.x] = (*base)->value(n) + static_cast<int>(zeros[n]);
#ifdef POINTER
    x[1] += *pointer;
#endif
#ifdef CONSTANT
    x[2] += static_cast<int>(weights[n & 15]);
#endif
#ifdef TAKEN
    taken = &weights[n & 15];
#endif
}
