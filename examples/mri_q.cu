// Magnetic resonance imaging, the matrix Q of a scan along any path: for every point x of the picture the sum
//
//     Q(x) = sum over samples k of power(k) * exp(2 pi i * k.x)
//
// One point a thread. The samples lie in constant memory, and a block takes some of them at a time into its
// shared memory: warps that each read their own place of 32 KiB of constants take them from each other's
// cache, and then wait for nothing else.
#include "example.h"

constexpr int kThreads = 256, kMostSamples = 2048;

__constant__ float4 samples[kMostSamples];  // where in frequency space; w: its power

__host__ __device__ float3 point_of(uint32_t i) {
    return make_float3(example::uniform(i, 1, -0.5f, 0.5f), example::uniform(i, 2, -0.5f, 0.5f),
                       example::uniform(i, 3, -0.5f, 0.5f));
}

float4 sample_of(uint32_t i) {
    return make_float4(example::uniform(i, 4, -16, 16), example::uniform(i, 5, -16, 16),
                       example::uniform(i, 6, -16, 16), example::uniform(i, 7, 0, 1));
}

__global__ void __launch_bounds__(kThreads) compute_q(const float3* points, float2* q, int sample_count) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float3 point = points[i];
    __shared__ float4 some[kThreads];
    float2 sum = make_float2(0, 0);
    for (int first = 0; first < sample_count; first += kThreads) {
        const int count = min(kThreads, sample_count - first);
        if (threadIdx.x < count) some[threadIdx.x] = samples[first + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < count; ++k) {
            const float4 sample = some[k];
            float sine, cosine;
            sincospif(2 * fmaf(sample.x, point.x, fmaf(sample.y, point.y, sample.z * point.z)), &sine,
                      &cosine);
            sum.x = fmaf(sample.w, cosine, sum.x);
            sum.y = fmaf(sample.w, sine, sum.y);
        }
        __syncthreads();
    }
    q[i] = sum;
}

int main(int argc, char** argv) {
    const auto options = example::parse_options(argc, argv, "mri_q", "computes the matrix Q of an MRI scan");
    const unsigned size = options.scaled(options.pick(1u << 10, 1u << 18, 1u << 21), kThreads);
    const int sample_count = options.pick(64, 2048, 2048);
    std::vector<float4> host_samples(sample_count);
    for (int k = 0; k < sample_count; ++k) host_samples[k] = sample_of(k);
    std::vector<float3> points(size);
    example::in_parallel(size, [&](size_t i) { points[i] = point_of(static_cast<uint32_t>(i)); });
    CHECK(cudaMemcpyToSymbol(samples, host_samples.data(), sample_count * sizeof(float4)));
    example::DeviceArray<float3> device_points(points);
    example::DeviceArray<float2> q(size);

    example::Timer timer("compute_q", compute_q);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        compute_q<<<size / kThreads, kThreads>>>(device_points.data(), q.data(), sample_count);
    timer.stop(options.iterations);

    example::Report report;
    const double tolerance =
        2e-6 * sample_count;  // each summand is at most 1, its angle right to about 1e-6 turns
    report.check("points", q, 4096, [&](size_t i, const float2& value) {
        double x = 0, y = 0;
        for (const float4& sample : host_samples) {
            const double turns = static_cast<double>(sample.x) * points[i].x +
                                 static_cast<double>(sample.y) * points[i].y +
                                 static_cast<double>(sample.z) * points[i].z;
            const double angle = 2 * 3.14159265358979323846 * (turns - std::floor(turns));
            x += sample.w * std::cos(angle);
            y += sample.w * std::sin(angle);
        }
        return std::fabs(value.x - x) < tolerance && std::fabs(value.y - y) < tolerance;
    });
    double sum = 0, sizes = 0;
    for (const float2& value : q.download()) sum += value.x, sizes += std::fabs(value.y);
    report.fold_rounded(sum, options.pick(0.1, 10.0, 100.0));
    report.fold_rounded(sizes, options.pick(0.1, 10.0, 100.0));
    report.fingerprint(q);
    return report.finish(timer);
}
