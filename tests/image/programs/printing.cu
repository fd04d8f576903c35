// Kernels that print have names that say so. With CALLERS or CALLED only the one half, for the linker.
#include <cassert>
#include <cstdio>

typedef int (*Function)(int);

struct Base {
    __device__ virtual int number(int x) const;
};

__device__ int tell(int x);
__device__ int square(int x);
extern __device__ Function table[2];

#ifndef CALLED
extern "C" {
__global__ void says_it(int x) { printf("it is %d\n", x); }
__global__ void says_by_function(int* x) { x[0] = tell(x[1]); }
__global__ void says_by_pointer(int* x) { x[0] = table[x[1]](x[2]); }
__global__ void says_by_method(const Base* base, int* x) { x[0] = base->number(x[1]); }
__global__ void computes(int* x) { x[threadIdx.x] = square(x[0]); }
__global__ void asserts(int* x) { assert(x[0] == 1), x[1] = 2; }
__global__ void traps(int* x) {
    if (x[0]) __trap();
    x[1] = 3;
}
__global__ void allocates(int** x) { x[0] = static_cast<int*>(malloc(64)); }
}
#endif

#ifndef CALLERS
__device__ __noinline__ int tell(int x) { return printf("told %d\n", x); }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ Function table[2] = {tell, square};
__device__ int Base::number(int x) const { return x; }
struct Derived : Base {
    __device__ int number(int x) const override { return printf("derived %d\n", x); }
};
// Prints nothing, and refers to what does.
extern "C" __global__ void makes(Base** base) { base[0] = new Derived; }
#endif
