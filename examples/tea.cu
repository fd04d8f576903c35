// TEA, the Tiny Encryption Algorithm of Wheeler and Needham, on many blocks of 64 bits: integer arithmetic
// and little else. Each block is encrypted with several keys in turn.
#include "example.h"

constexpr int kThreads = 128, kCycles = 32, kMostKeys = 8;
constexpr uint32_t kDelta = 0x9e3779b9;

__constant__ uint4 keys[kMostKeys];

uint4 key_of(uint32_t i) {
    return make_uint4(example::hash(i, 1), example::hash(i, 2), example::hash(i, 3), example::hash(i, 4));
}

__device__ uint2 encrypted(uint2 block, const uint4& key) {
    uint32_t sum = 0;
#pragma unroll 8
    for (int cycle = 0; cycle < kCycles; ++cycle) {
        sum += kDelta;
        block.x += ((block.y << 4) + key.x) ^ (block.y + sum) ^ ((block.y >> 5) + key.y);
        block.y += ((block.x << 4) + key.z) ^ (block.x + sum) ^ ((block.x >> 5) + key.w);
    }
    return block;
}

uint2 decrypted(uint2 block, const uint4& key) {
    for (uint32_t cycle = kCycles; cycle > 0; --cycle) {
        const uint32_t sum = cycle * kDelta;
        block.y -= ((block.x << 4) + key.z) ^ (block.x + sum) ^ ((block.x >> 5) + key.w);
        block.x -= ((block.y << 4) + key.x) ^ (block.y + sum) ^ ((block.y >> 5) + key.y);
    }
    return block;
}

__global__ void encrypt(const uint2* plain, uint2* cipher, unsigned size, int key_count) {
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        uint2 block = plain[i];
        for (int key = 0; key < key_count; ++key) block = encrypted(block, keys[key]);
        cipher[i] = block;
    }
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "tea", "encrypts with the Tiny Encryption Algorithm");
    const unsigned size = options.scaled(options.pick(3'000u, 10'000'000u, 100'000'000u));
    const unsigned blocks = options.pick(16u, 4096u, 16384u);
    const int key_count = options.pick(2, kMostKeys, kMostKeys);
    std::vector<uint4> host_keys;
    for (int i = 0; i < key_count; ++i) host_keys.push_back(key_of(i));
    std::vector<uint2> plain(size);
    example::in_parallel(size, [&](size_t i) {
        plain[i] = make_uint2(example::hash(static_cast<uint32_t>(i), 5),
                              example::hash(static_cast<uint32_t>(i), 6));
    });
    CHECK(cudaMemcpyToSymbol(keys, host_keys.data(), key_count * sizeof(uint4)));
    example::DeviceArray<uint2> device_plain(plain), cipher(size);

    example::Timer timer("encrypt", encrypt);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        encrypt<<<blocks, kThreads>>>(device_plain.data(), cipher.data(), size, key_count);
    timer.stop(options.iterations);

    example::Report report;
    report.check("blocks", cipher, 1 << 16, [&](size_t i, uint2 block) {
        for (int key = key_count - 1; key >= 0; --key) block = decrypted(block, host_keys[key]);
        return block.x == plain[i].x && block.y == plain[i].y;
    });
    report.fold(cipher);
    return report.finish(timer);
}
