//! nvrtc
// Refused: what a macro makes cannot be edited. A macro that only says how a kernel is declared does no harm.
#define KERNEL(name, value) __global__ void name(int* a) { a[blockIdx.x] = value; }
#define EXPORTED extern "C" __global__ void __launch_bounds__(64)
#define ARGUMENTS int *a, int n
#define BEGIN {
KERNEL(one, 1)
EXPORTED two(ARGUMENTS) { a[blockIdx.x] = n; }
__global__ void three(int* a) BEGIN a[blockIdx.x] = 3; }
