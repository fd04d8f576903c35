// Two-point angular correlation: how often do two galaxies lie how far apart in the sky?
//
// There is one observed set of directions and several random ones. Block 0 compares the observed set with
// itself, the next blocks with each random set, the last ones each random set with itself. Every pair goes
// into one of kBins classes by its angle. A block has kCopies histograms in shared memory, so that few
// threads add to the same counter at a time.
#include "example.h"

constexpr int kThreads = 256, kBins = 20, kCopies = 128;

__constant__ float
    limits[kBins - 1];  // cosines of the angles between the classes: the first is the widest angle

__host__ __device__ float cosine(const float3& a, const float3& b) {
    return fmaf(a.x, b.x, fmaf(a.y, b.y, a.z * b.z));
}

struct Comparison {
    int first, second;  // sets
};

__host__ __device__ Comparison comparison_of(int block, int random_sets) {
    if (block <= random_sets) return {0, block};
    return {block - random_sets, block - random_sets};
}

__global__ void __launch_bounds__(kThreads)
    count_pairs(const float3* points, int size, int random_sets, unsigned* counts) {
    __shared__ unsigned histogram[kBins][kCopies];
    __shared__ float3 tile[kThreads];
    const int thread = threadIdx.x;
    for (int i = thread; i < kBins * kCopies; i += kThreads) histogram[i / kCopies][i % kCopies] = 0;
    const Comparison sets = comparison_of(blockIdx.x, random_sets);
    const float3* const first = points + static_cast<size_t>(sets.first) * size;
    const float3* const second = points + static_cast<size_t>(sets.second) * size;

    for (int start = 0; start < size; start += kThreads) {
        __syncthreads();
        if (start + thread < size) tile[thread] = second[start + thread];
        __syncthreads();
        const int in_tile = min(kThreads, size - start);
        for (int i = thread; i < size; i += kThreads) {
            const float3 own = first[i];
            for (int j = 0; j < in_tile; ++j) {
                if (sets.first == sets.second && start + j <= i) continue;  // each pair once
                const float value = cosine(own, tile[j]);
                int low = 0, high = kBins - 1;  // the class is how many limits the value has passed
                while (low < high) {
                    const int middle = (low + high) / 2;
                    if (value >= limits[middle])
                        low = middle + 1;
                    else
                        high = middle;
                }
                atomicAdd(&histogram[low][thread % kCopies], 1u);
            }
        }
    }
    __syncthreads();
    for (int bin = thread / 32; bin < kBins; bin += kThreads / 32) {
        unsigned sum = 0;
        for (int copy = thread % 32; copy < kCopies; copy += 32) sum += histogram[bin][copy];
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
        if (thread % 32 == 0) counts[blockIdx.x * kBins + bin] = sum;
    }
}

std::vector<float> make_limits() {  // angles fall from 60 degrees, by a factor of 0.75 each
    std::vector<float> values;
    double angle = 1.0471975511965976;
    for (int i = 0; i < kBins - 1; ++i, angle *= 0.75) values.push_back(static_cast<float>(std::cos(angle)));
    return values;
}

float3 make_point(uint32_t index) {  // random directions around the z axis
    const float x = example::uniform(index, 1, -0.5f, 0.5f), y = example::uniform(index, 2, -0.5f, 0.5f);
    return make_float3(x, y, sqrtf(1 - fmaf(x, x, y * y)));
}

std::vector<unsigned> counts_on_cpu(const float3* first, const float3* second, int size,
                                    const std::vector<float>& limits) {
    std::vector<unsigned> counts(kBins);
    for (int i = 0; i < size; ++i)
        for (int j = first == second ? i + 1 : 0; j < size; ++j) {
            const float value = cosine(first[i], second[j]);
            ++counts[std::upper_bound(limits.begin(), limits.end(), value) - limits.begin()];
        }
    return counts;
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "tpacf", "histograms of the angles between points in the sky");
    const int size = options.scaled(options.pick(128, 1280, 4096)), random_sets = options.pick(3, 100, 100),
              blocks = 2 * random_sets + 1;
    const std::vector<float> host_limits = make_limits();
    std::vector<float3> points(static_cast<size_t>(size) * (random_sets + 1));
    for (size_t i = 0; i < points.size(); ++i) points[i] = make_point(static_cast<uint32_t>(i));
    CHECK(cudaMemcpyToSymbol(limits, host_limits.data(), sizeof limits));
    example::DeviceArray<float3> device_points(points);
    example::DeviceArray<unsigned> counts(static_cast<size_t>(blocks) * kBins);

    example::Timer timer("count_pairs", count_pairs);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        count_pairs<<<blocks, kThreads>>>(device_points.data(), size, random_sets, counts.data());
    timer.stop(options.iterations);

    // All pairs are in the histograms, and those of some blocks are each in the right class.
    example::Report report;
    const std::vector<unsigned> result = counts.download();
    const unsigned all = size * size, half = all / 2 - size / 2;
    const int step = std::max(1, blocks / 8), compared = (blocks + step - 1) / step;
    for (int block = 0; block < blocks; ++block) {
        unsigned sum = 0;
        for (int bin = 0; bin < kBins; ++bin) sum += result[block * kBins + bin];
        report.expect(sum == (block == 0 || block > random_sets ? half : all),
                      "a block has lost or invented pairs");
    }
    const size_t right = example::count_where(compared, [&](size_t i) {
        const int block = static_cast<int>(i) * step;
        const Comparison sets = comparison_of(block, random_sets);
        const auto expected =
            counts_on_cpu(&points[static_cast<size_t>(sets.first) * size],
                          &points[static_cast<size_t>(sets.second) * size], size, host_limits);
        return std::equal(expected.begin(), expected.end(), result.begin() + block * kBins);
    });
    report.checked("histograms", right, compared, blocks);
    report.fold(counts);
    return report.finish(timer);
}
