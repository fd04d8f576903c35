//! nvrtc
// Bodies of one name are numbered. The compiler is told which of the managed forms a template means.
__global__ void store(int* a) { a[blockIdx.x] = 1; }
__global__ void store(float* a) { a[blockIdx.x] = 2; }
template <class T> __global__ void store(T* a, T value) { a[blockIdx.x] = value; }
template <class T> __global__ void store(T** a, T* value) { a[blockIdx.x] = value; }
template __global__ void store<int>(int*, int);
template __global__ void store<int>(int**, int*);

// Twin: one of that name stays as it is, the others do not.
__global__ void store(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); }
