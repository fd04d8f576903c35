//! nvrtc
// An error, and no text.
__global__ void wrong(int* a) {
    a[blockIdx.x] = undeclared;
}
