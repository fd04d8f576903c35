// Kernels that device code starts, by a name and by an address in memory.
extern "C" {

__global__ void started(float* out) { out[threadIdx.x] += 1; }
__global__ void starts_itself(float* out, int depth) {
    if (depth && threadIdx.x == 0) starts_itself<<<1, 32>>>(out, depth - 1);
    out[threadIdx.x] += 1;
}
__global__ void starts(float* out) {
    if (threadIdx.x == 0) started<<<1, 32>>>(out);
    out[threadIdx.x] += 2;
}
__global__ void apart(float* out) { out[threadIdx.x] += 3; }

}  // extern "C"
