//! nvrtc
// By reference, so that it is not copied.
struct Many { int values[64]; };
__global__ void picks(const __grid_constant__ Many many, int* a) { a[blockIdx.x] = many.values[a[0]]; }
__global__ void copies(Many many, int* a) { many.values[0] += 1; a[blockIdx.x] = many.values[a[0]]; }
