//! nvrtc
// Declarations get one for the managed form: what they say of the kernel holds for it too.
__global__ void __launch_bounds__(64) fill(int* a, int value = 3);
template <class T> __global__ void scale(T* a, T by);
__global__ void fill(int* a, int value);
__device__ void other(int* a);

__global__ void fill(int* a, int value) { a[blockIdx.x] = value; other(a); }
template <class T> __global__ void scale(T* a, T by) { a[blockIdx.x] *= by; }
__device__ void other(int* a) { a[gridDim.x] = 0; }
template __global__ void scale<float>(float*, float);

// Twin: nothing is declared for what stays as it is.
__global__ void stays(unsigned long long* a);
__global__ void stays(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); }
