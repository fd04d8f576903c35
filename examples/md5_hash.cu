// MD5 search: which key has this MD5 hash? Each thread hashes many keys and reports the one that fits.
//
// A key is eight letters from a to p, four bits of its number each. So that every hash counts, a
// block also returns the sum of its hashes: shuffles within warps, then shared memory between them.
#include "example.h"

constexpr int kThreads = 384, kWarps = kThreads / 32;

struct Hash {
    uint32_t a, b, c, d;
    __host__ __device__ bool operator==(const Hash& other) const {
        return a == other.a && b == other.b && c == other.c && d == other.d;
    }
    __host__ __device__ uint32_t sum() const { return a + b + c + d; }
};

__host__ __device__ uint32_t letters(uint32_t number) {  // four letters of the lower 16 bits
    uint32_t text = 0;
    for (int i = 0; i < 4; ++i) text |= ('a' + (number >> (4 * i) & 15)) << (8 * i);
    return text;
}

// RFC 1321 for a message of eight bytes.
__host__ __device__ Hash md5(uint32_t key) {
    constexpr uint32_t sines[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
        0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
        0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
        0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
        0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
        0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
        0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
    constexpr int rotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    const uint32_t message[16] = {
        letters(key >> 16), letters(key), 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0};
    constexpr Hash start = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

    uint32_t a = start.a, b = start.b, c = start.c, d = start.d;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        const int round = i / 16;
        const uint32_t f = round == 0   ? (b & c) | (~b & d)
                           : round == 1 ? (b & d) | (c & ~d)
                           : round == 2 ? b ^ c ^ d
                                        : c ^ (b | ~d);
        const int word = (round == 0 ? i : round == 1 ? 5 * i + 1 : round == 2 ? 3 * i + 5 : 7 * i) % 16;
        const uint32_t sum = a + f + sines[i] + message[word];
        const int left = rotations[round][i % 4];
        a = d, d = c, c = b;
        b += sum << left | sum >> (32 - left);
    }
    return {start.a + a, start.b + b, start.c + c, start.d + d};
}

__global__ void __launch_bounds__(kThreads)
    search(Hash wanted, int keys_per_thread, uint32_t* found, uint32_t* sums) {
    __shared__ uint32_t warp_sums[kWarps];
    const uint32_t threads = gridDim.x * blockDim.x;
    uint32_t key = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int i = 0; i < keys_per_thread; ++i, key += threads) {
        const Hash hash = md5(key);
        if (hash == wanted) atomicMin(found, key);
        sum += hash.sum();
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int warp = 1; warp < kWarps; ++warp) sum += warp_sums[warp];
    sums[blockIdx.x] = sum;
}

int main(int argc, char** argv) {
    const auto options = example::parse_options(argc, argv, "md5_hash", "searches the key of an MD5 hash");
    const unsigned blocks = options.scaled(options.pick(8, 2560, 25432));
    const int keys_per_thread = options.pick(2, 80, 80);
    const uint32_t threads = blocks * kThreads, keys = threads * keys_per_thread,
                   secret = example::hash(7) % keys;
    const Hash wanted = md5(secret);
    example::DeviceArray<uint32_t> found(std::vector<uint32_t>{~0u}), sums(blocks);

    example::Timer timer("search", search);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        search<<<blocks, kThreads>>>(wanted, keys_per_thread, found.data(), sums.data());
    timer.stop(options.iterations);

    example::Report report;
    report.expect(md5(0x01234567) == Hash{0x000d31d6, 0x2cf83f89, 0xd1f5eacd, 0x77a9817a},
                  "md5(\"dcbahgfe\")");
    report.expect(found.download()[0] == secret, "the key was not found");
    report.check("blocks' sums of hashes", sums, 64, [&](size_t block, uint32_t sum) {
        uint32_t expected = 0;
        for (uint32_t i = 0; i < static_cast<uint32_t>(keys_per_thread); ++i)
            for (uint32_t thread = 0; thread < kThreads; ++thread)
                expected += md5(i * threads + static_cast<uint32_t>(block) * kThreads + thread).sum();
        return sum == expected;
    });
    report.fold(found);
    report.fold(sums);
    return report.finish(timer);
}
