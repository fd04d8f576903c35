// Sums of absolute differences, as video encoders compute them: how far does each block of 16 x 16 pixels
// differ from every place nearby in the picture before, and where does it differ least?
//
// A warp has one block of pixels. The part of the picture before that it searches lies in shared memory,
// whose size is asked for at launch; each lane takes every 32nd offset. All sums are written out, and the
// best of them.
#include "example.h"

constexpr int kPixels = 16;

struct Picture {
    int width, height;
    __host__ __device__ size_t clamped(int x, int y) const {  // beyond its edge a picture goes on as it ends
        x = x < 0 ? 0 : x < width ? x : width - 1;
        y = y < 0 ? 0 : y < height ? y : height - 1;
        return static_cast<size_t>(y) * width + x;
    }
};

__global__ void __launch_bounds__(32) compare(const unsigned char* now, const unsigned char* before,
                                              Picture picture, int reach, uint16_t* sums, uint32_t* best) {
    extern __shared__ unsigned char shared[];
    const int lane = threadIdx.x, left = blockIdx.x * kPixels, top = blockIdx.y * kPixels;
    const int edge = kPixels + 2 * reach, places = (2 * reach + 1) * (2 * reach + 1),
              block = blockIdx.y * gridDim.x + blockIdx.x;
    unsigned char* const pixels = shared;
    unsigned char* const area = shared + kPixels * kPixels;
    for (int i = lane; i < kPixels * kPixels; i += 32)
        pixels[i] = now[static_cast<size_t>(top + i / kPixels) * picture.width + left + i % kPixels];
    for (int i = lane; i < edge * edge; i += 32)
        area[i] = before[picture.clamped(left - reach + i % edge, top - reach + i / edge)];
    __syncwarp();

    uint32_t least = ~0u;  // the sum in the upper half, where in the lower
    for (int place = lane; place < places; place += 32) {
        const unsigned char* const there = area + place / (2 * reach + 1) * edge + place % (2 * reach + 1);
        uint32_t sum = 0;
        for (int y = 0; y < kPixels; ++y)
#pragma unroll
            for (int x = 0; x < kPixels; ++x) sum = __usad(pixels[y * kPixels + x], there[y * edge + x], sum);
        sums[static_cast<size_t>(block) * places + place] = static_cast<uint16_t>(sum);
        least = min(least, sum << 16 | place);
    }
    for (int other = 16; other > 0; other /= 2) least = min(least, __shfl_xor_sync(~0u, least, other));
    if (lane == 0) best[block] = least;
}

uint32_t sum_on_cpu(const std::vector<unsigned char>& now, const std::vector<unsigned char>& before,
                    const Picture& picture, int left, int top, int dx, int dy) {
    uint32_t sum = 0;
    for (int y = top; y < top + kPixels; ++y)
        for (int x = left; x < left + kPixels; ++x)
            sum += std::abs(now[picture.clamped(x, y)] - before[picture.clamped(x + dx, y + dy)]);
    return sum;
}

int main(int argc, char** argv) {
    const auto options = example::parse_options(argc, argv, "sad", "finds where parts of a picture moved");
    Picture picture = options.pick(Picture{96, 64}, Picture{1920, 1072}, Picture{3840, 2160});
    picture.height = options.scaled(picture.height, kPixels);  // the width is a multiple of it, too
    const int reach = options.pick(4, 16, 32), across = 2 * reach + 1, places = across * across,
              edge = kPixels + 2 * reach;
    const dim3 grid(picture.width / kPixels, picture.height / kPixels);
    const size_t blocks = static_cast<size_t>(grid.x) * grid.y,
                 size = static_cast<size_t>(picture.width) * picture.height;

    // What is now at (x, y) was at (x + 3, y - 2), with some noise.
    std::vector<unsigned char> now(size), before(size);
    example::in_parallel(size,
                         [&](size_t i) { before[i] = example::hash(static_cast<uint32_t>(i), 1) >> 24; });
    example::in_parallel(size, [&](size_t i) {
        const int x = static_cast<int>(i % picture.width), y = static_cast<int>(i / picture.width);
        now[i] = static_cast<unsigned char>(before[picture.clamped(x + 3, y - 2)] ^
                                            (example::hash(static_cast<uint32_t>(i), 2) & 3));
    });
    example::DeviceArray<unsigned char> device_now(now), device_before(before);
    example::DeviceArray<uint16_t> sums((blocks * places + 1) / 2 * 2);
    example::DeviceArray<uint32_t> best(blocks);
    CHECK(cudaMemset(sums.data(), 0, sums.size() * sizeof(uint16_t)));

    example::Timer timer("compare", compare);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        compare<<<grid, 32, kPixels * kPixels + edge * edge>>>(device_now.data(), device_before.data(),
                                                               picture, reach, sums.data(), best.data());
    timer.stop(options.iterations);

    example::Report report;
    auto expected = [&](size_t block, int place) {
        const int left = static_cast<int>(block % grid.x) * kPixels,
                  top = static_cast<int>(block / grid.x) * kPixels;
        return sum_on_cpu(now, before, picture, left, top, place % across - reach, place / across - reach);
    };
    report.check("sums", sums, 1 << 16, [&](size_t i, uint16_t sum) {
        return i / places < blocks ? sum == expected(i / places, static_cast<int>(i % places)) : sum == 0;
    });
    report.check("best places", best, 256, [&](size_t block, uint32_t least) {
        uint32_t wanted = ~0u;
        for (int place = 0; place < places; ++place)
            wanted = std::min(wanted, expected(block, place) << 16 | place);
        return least == wanted;
    });
    report.fold(sums);
    report.fold(best);
    return report.finish(timer);
}
