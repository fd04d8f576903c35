//! nvrtc
// One, two and three dimensions: the names are parameters of the body, which stays as it is.
__global__ void line(float* a) { a[blockIdx.x * blockDim.x + threadIdx.x] = gridDim.x; }

__global__ void plane(float* a, int width)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    a[y * width + x] = gridDim.y;
}

__global__ void space(uint3* a) {
    const auto here = blockIdx;
    const dim3 all = gridDim;
    a[here.x + all.x * (here.y + all.y * here.z)] = blockIdx;
}

// Refused: its own parameters have these names.
struct Place { unsigned x; };
__global__ void own(float* a, Place blockIdx, Place gridDim) { a[blockIdx.x] = gridDim.x; }
