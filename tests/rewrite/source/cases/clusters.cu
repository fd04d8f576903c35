//! nvrtc sm_90
// Refused.
__global__ void __cluster_dims__(2, 1, 1) fixed(int* a) { a[blockIdx.x] = 1; }
__global__ void reads(int* a) { a[0] = __clusterIdx().x; }
