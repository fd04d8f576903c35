// Particle filter: where is an object that moves through a noisy picture?
//
// Each particle is a guess of the object's place. For every frame the device moves the particles at random
// and weighs them by how well they fit what was seen; the host adds the weights up; and the device draws a
// new set, in which a particle appears as often as its weight asks for. Drawing is the costly part: each
// thread walks along the sums of the weights until they pass its own mark.
//
// Weights are whole numbers, so that their sums do not depend on an order.
#include "example.h"

constexpr int kThreads = 128, kFrames = 2;

struct Place {
    float x, y;
};

__host__ __device__ Place seen_in(int frame) { return {10.0f + 2.0f * frame, 20.0f - 1.0f * frame}; }

// Noise that is nearly normal: the sum of four uniform numbers.
__host__ __device__ float noise(uint32_t index, uint32_t seed) {
    float sum = 0;
    for (uint32_t i = 0; i < 4; ++i) sum += example::uniform(index, 4 * seed + i, -1, 1);
    return sum;
}

__host__ __device__ Place move(Place place, uint32_t index, int frame) {
    return {place.x + 2 + noise(index, 2 * frame), place.y - 1 + noise(index, 2 * frame + 1)};
}

__host__ __device__ uint32_t weigh(Place place, int frame) {  // at most 65536, at least 1
    const Place seen = seen_in(frame);
    const float x = place.x - seen.x, y = place.y - seen.y;
    return 1 + static_cast<uint32_t>(65535.0f / fmaf(x, x, fmaf(y, y, 1.0f)));
}

// The i-th of `count` marks, evenly spaced over the sum of all weights.
__host__ __device__ uint64_t mark(uint64_t total, uint32_t i, uint32_t count) {
    return (total * (2 * i + 1)) / (2ull * count);
}

__global__ void move_and_weigh(Place* places, uint32_t* weights, uint32_t count, int frame) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Place place = move(places[i], i, frame);
    places[i] = place;
    weights[i] = weigh(place, frame);
}

__global__ void draw(const uint64_t* sums, const Place* places, Place* drawn, uint32_t count) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const uint64_t own = mark(sums[count - 1], i, count);
    uint32_t chosen = 0;
    while (sums[chosen] <= own) ++chosen;  // ends: the last sum is more than any mark
    drawn[i] = places[chosen];
}

std::vector<uint64_t> sums_of(const std::vector<uint32_t>& weights) {
    std::vector<uint64_t> sums(weights.size());
    uint64_t sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) sums[i] = sum += weights[i];
    return sums;
}

std::vector<Place> filter_on_cpu(uint32_t count) {
    std::vector<Place> places(count, seen_in(-1)), drawn(count);
    std::vector<uint32_t> weights(count);
    for (int frame = 0; frame < kFrames; ++frame) {
        example::in_parallel(count, [&](size_t i) {
            places[i] = move(places[i], static_cast<uint32_t>(i), frame);
            weights[i] = weigh(places[i], frame);
        });
        const std::vector<uint64_t> sums = sums_of(weights);
        example::in_parallel(count, [&](size_t i) {
            const uint64_t own = mark(sums.back(), static_cast<uint32_t>(i), count);
            drawn[i] = places[std::upper_bound(sums.begin(), sums.end(), own) - sums.begin()];
        });
        places.swap(drawn);
    }
    return places;
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "particle_filter", "follows an object with a particle filter");
    const uint32_t count = options.scaled(options.pick(768, 65536, 262144));
    const unsigned blocks = example::blocks_for(count, kThreads);
    const std::vector<Place> start(count, seen_in(-1));
    std::vector<uint32_t> host_weights;
    example::DeviceArray<Place> places(count), drawn(count);
    example::DeviceArray<uint32_t> weights(count);
    example::DeviceArray<uint64_t> sums(count);

    example::Timer timer("draw", draw);
    for (int i = 0; i < options.iterations; ++i) {
        drawn.upload(start);
        for (int frame = 0; frame < kFrames; ++frame) {
            CHECK(cudaMemcpy(places.data(), drawn.data(), count * sizeof(Place), cudaMemcpyDeviceToDevice));
            move_and_weigh<<<blocks, kThreads>>>(places.data(), weights.data(), count, frame);
            host_weights = weights.download();
            sums.upload(sums_of(host_weights));
            timer.start();
            draw<<<blocks, kThreads>>>(sums.data(), places.data(), drawn.data(), count);
            timer.stop(1);
        }
    }

    example::Report report;
    const std::vector<Place> expected = filter_on_cpu(count);
    report.check("particles", drawn, count, [&](size_t i, const Place& place) {
        return place.x == expected[i].x && place.y == expected[i].y;
    });
    report.fold(drawn);
    return report.finish(timer);
}
