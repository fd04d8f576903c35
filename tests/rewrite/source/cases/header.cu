//! nvcc
// A header's kernels and functions are not in the text.
#include "header.h"
__global__ void calls(int* a) { a[header_place()] = 1; }
__global__ void uses(int* a) { a[blockIdx.x] = header_quiet(); }
void start(int* a) { header_kernel<<<1, 1>>>(a); }
