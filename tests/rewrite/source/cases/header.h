#pragma once
static __device__ int header_place() { return blockIdx.x; }
static __device__ int header_quiet() { return 1; }
static __global__ void header_kernel(int* a) { a[blockIdx.x] = 1; }
