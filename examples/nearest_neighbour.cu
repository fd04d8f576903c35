// Nearest neighbours: the ten records that lie nearest to a place.
//
// The kernel that counts computes every record's distance, one a thread. Another one collects those within a
// radius that should hold some dozens, in any order; the host sorts them.
#include "example.h"

constexpr int kThreads = 256, kWanted = 10;
constexpr uint32_t kCapacity = 4096;

struct Record {
    float latitude, longitude;
};

struct Near {
    float distance;
    uint32_t record;
    bool operator<(const Near& other) const {
        return distance != other.distance ? distance < other.distance : record < other.record;
    }
};

__host__ __device__ Record record_of(uint32_t i) {
    return {example::uniform(i, 1, -90, 90), example::uniform(i, 2, -180, 180)};
}

__host__ __device__ float distance_between(Record a, Record b) {
    const float latitude = a.latitude - b.latitude, longitude = a.longitude - b.longitude;
    return sqrtf(fmaf(latitude, latitude, longitude * longitude));
}

__global__ void fill(Record* records, uint32_t size) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) records[i] = record_of(i);
}

__global__ void measure(const Record* records, float* distances, uint32_t size, Record place) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) distances[i] = distance_between(records[i], place);
}

__global__ void collect(const float* distances, uint32_t size, float radius, Near* found, uint32_t* count) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size || distances[i] > radius) return;
    const uint32_t slot = atomicAdd(count, 1u);
    if (slot < kCapacity) found[slot] = {distances[i], i};
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "nearest_neighbour", "finds the records nearest to a place");
    const uint32_t size = options.scaled(options.pick(8'000u, 190'000'000u, 1'900'000'000u),
                                         1000);  // of fewer the circle below would not lie inside
    const unsigned blocks = example::blocks_for(size, kThreads);
    const Record place = {31.0f, -17.0f};
    example::DeviceArray<Record> records(size);
    example::DeviceArray<float> distances(size);
    fill<<<blocks, kThreads>>>(records.data(), size);

    example::Timer timer("measure", measure);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        measure<<<blocks, kThreads>>>(records.data(), distances.data(), size, place);
    timer.stop(options.iterations);

    // A circle that holds 64 of them on average, of 180 by 360 degrees.
    const float radius = static_cast<float>(std::sqrt(64 * 180.0 * 360.0 / (3.14159265 * size)));
    example::DeviceArray<Near> found(kCapacity);
    example::DeviceArray<uint32_t> count(std::vector<uint32_t>{0});
    collect<<<blocks, kThreads>>>(distances.data(), size, radius, found.data(), count.data());
    CHECK(cudaGetLastError());

    example::Report report;
    const uint32_t in_circle = count.download()[0];
    report.expect(in_circle >= kWanted && in_circle <= kCapacity,
                  "the circle holds too few records, or too many");
    std::vector<Near> nearest(std::clamp<uint32_t>(in_circle, kWanted, kCapacity));
    found.download(nearest.data(), 0, nearest.size());
    std::sort(nearest.begin(), nearest.end());
    nearest.resize(kWanted);

    // The ten are what they claim, and no record that was left out is nearer.
    size_t right = 0;
    for (const Near& near : nearest)
        right += near.record < size && near.distance == distance_between(record_of(near.record), place);
    report.checked("nearest", right, kWanted, kWanted);
    report.check("distances", distances, 1 << 16, [&](size_t i, float distance) {
        const Near near = {distance, static_cast<uint32_t>(i)};
        const bool listed = std::binary_search(nearest.begin(), nearest.end(), near);
        return distance == distance_between(record_of(near.record), place) &&
               (listed || nearest.back() < near);
    });
    for (const Near& near : nearest) report.fold(near.record);
    report.fold(distances);
    return report.finish(timer);
}
