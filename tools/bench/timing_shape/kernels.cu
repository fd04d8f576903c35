// Four kernels for bench_timing_shape: what limits each is in its name. Blocks of 128 threads; every block
// does the same work, so the time for a grid tells how much of it a multiprocessor does at once.
//
// `nothing` is never true and keeps the compiler from dropping the work.

// A chain of multiply-adds, each waiting for the one before.
extern "C" __global__ void compute(float* out, const float*, unsigned, unsigned rounds, float nothing) {
    float x = threadIdx.x;
    for (unsigned i = 0; i < rounds; ++i) {
#pragma unroll
        for (int j = 0; j < 32; ++j) x = fmaf(x, 0.9990234375f, 1.0f);
    }
    if (x == nothing) *out = x;
}

// Every block reads a part of the array once, in order; one load of 16 bytes is under way in each thread.
extern "C" __global__ void bandwidth(float* out, const float* in, unsigned, unsigned rounds, float nothing) {
    const float4* from =
        reinterpret_cast<const float4*>(in) + static_cast<size_t>(blockIdx.x) * rounds * blockDim.x;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (unsigned i = 0; i < rounds; ++i) {
        const float4 next = __ldcg(from + i * blockDim.x + threadIdx.x);
        sum.x += next.x, sum.y += next.y, sum.z += next.z, sum.w += next.w;
        if (sum.x == nothing) break;  // the next load waits for this one
    }
    if (sum.x + sum.y + sum.z + sum.w == nothing) *out = sum.x;
}

// Each warp follows a list of its own through the array: one sector at a time.
extern "C" __global__ void latency(float* out, const float* in, unsigned count, unsigned rounds,
                                   float nothing) {
    const unsigned* next = reinterpret_cast<const unsigned*>(in);
    unsigned at = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 7919u % count;
    for (unsigned i = 0; i < rounds; ++i) at = __ldcg(next + at);
    if (static_cast<float>(at) == nothing) *out = 1;
}

// Loads, shared memory, arithmetic and a barrier, each waiting for the one before.
extern "C" __global__ void mixed(float* out, const float* in, unsigned count, unsigned rounds,
                                 float nothing) {
    __shared__ float exchange[128];
    float x = threadIdx.x;
    const unsigned first = blockIdx.x * blockDim.x * rounds % (count - blockDim.x * rounds);
#pragma unroll 1
    for (unsigned i = 0; i < rounds; ++i) {
        exchange[threadIdx.x] = __ldcg(in + first + i * blockDim.x + threadIdx.x) + x;
        __syncthreads();
        x += exchange[threadIdx.x ^ 33];
#pragma unroll
        for (int j = 0; j < 24; ++j) x = fmaf(x, 0.9990234375f, 1.0f);
        __syncthreads();
    }
    if (x == nothing) *out = x;
}
