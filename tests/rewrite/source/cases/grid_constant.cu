//! nvrtc
// By reference, so that it is not copied.
struct Many { int values[64]; };
__global__ void picks(const __grid_constant__ Many many, int* a) { a[blockIdx.x] = many.values[a[0]]; }
__global__ void copies(Many many, int* a) { many.values[0] += 1; a[blockIdx.x] = many.values[a[0]]; }

// Twin: stays as it is.
__global__ void stays(const __grid_constant__ Many many, unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); a[1] = many.values[0]; }
