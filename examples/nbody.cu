// Gravity between n bodies, all pairs: one time step.
//
// A thread moves one body. The block brings kTile bodies at a time into shared memory (asked for at launch)
// and every thread sums their pull in the order of their numbers.
#include "example.h"

constexpr int kThreads = 256, kTile = 512;
constexpr float kSoftening2 = 1e-2f, kTimeStep = 1e-3f;

struct Body {
    float4 position;  // w: its mass
    float4 velocity;
};

__host__ __device__ void add_pull(float3& pull, const float4& own, const float4& other) {
    const float x = other.x - own.x, y = other.y - own.y, z = other.z - own.z;
    const float distance2 = fmaf(x, x, fmaf(y, y, fmaf(z, z, kSoftening2)));
    const float inverse = 1.0f / sqrtf(distance2);
    const float strength = other.w * (inverse * inverse * inverse);
    pull.x = fmaf(strength, x, pull.x);
    pull.y = fmaf(strength, y, pull.y);
    pull.z = fmaf(strength, z, pull.z);
}

__host__ __device__ Body moved(const float4& position, const float4& velocity, const float3& pull) {
    Body body = {position, velocity};
    body.velocity.x = fmaf(pull.x, kTimeStep, velocity.x);
    body.velocity.y = fmaf(pull.y, kTimeStep, velocity.y);
    body.velocity.z = fmaf(pull.z, kTimeStep, velocity.z);
    body.position.x = fmaf(body.velocity.x, kTimeStep, position.x);
    body.position.y = fmaf(body.velocity.y, kTimeStep, position.y);
    body.position.z = fmaf(body.velocity.z, kTimeStep, position.z);
    return body;
}

// The number of bodies is a multiple of kTile, so that there are no threads without a body.
__global__ void __launch_bounds__(kThreads)
    step(const float4* positions, const float4* velocities, Body* bodies, int count) {
    extern __shared__ float4 tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = positions[i];
    float3 pull = make_float3(0, 0, 0);
    for (int first = 0; first < count; first += kTile) {
        for (int j = threadIdx.x; j < kTile; j += kThreads) tile[j] = positions[first + j];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < kTile; ++j) add_pull(pull, own, tile[j]);
        __syncthreads();
    }
    bodies[i] = moved(own, velocities[i], pull);
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "nbody", "one time step of gravity between all pairs of bodies");
    const int count = options.scaled(options.pick(512, 20480, 65536), kTile);
    std::vector<float4> positions(count), velocities(count);
    for (int i = 0; i < count; ++i) {
        auto random = [&](uint32_t seed, float low, float high) {
            return example::uniform(i, seed, low, high);
        };
        positions[i] = make_float4(random(1, -1, 1), random(2, -1, 1), random(3, -1, 1), random(4, 0.5f, 1));
        velocities[i] = make_float4(random(5, -1, 1), random(6, -1, 1), random(7, -1, 1), 0);
    }
    example::DeviceArray<float4> device_positions(positions), device_velocities(velocities);
    example::DeviceArray<Body> bodies(count);

    example::Timer timer("step", step);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        step<<<count / kThreads, kThreads, kTile * sizeof(float4)>>>(
            device_positions.data(), device_velocities.data(), bodies.data(), count);
    timer.stop(options.iterations);

    example::Report report;
    report.check("bodies", bodies, 512, [&](size_t i, const Body& body) {
        float3 pull = make_float3(0, 0, 0);
        for (const float4& other : positions) add_pull(pull, positions[i], other);
        const Body expected = moved(positions[i], velocities[i], pull);
        return std::memcmp(&body, &expected, sizeof body) == 0;
    });
    report.fold(bodies);
    return report.finish(timer);
}
