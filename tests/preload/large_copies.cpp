// Copies of pageable memory so large that two cores share them, by several threads at once, of which one at
// a time gets the second core: every byte arrives, nothing beside the destination changes.
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/preload/program.h"

constexpr int kThreads = 3;
constexpr int kRounds = 8;
constexpr size_t kBytes = (5u << 20) + 12345;
constexpr size_t kMargin = 64;

uint32_t value(size_t index, uint32_t seed) { return static_cast<uint32_t>(index) * 2654435761u + seed; }

void copy_round(CUcontext context, uint32_t thread) {
    CHECK(cuCtxSetCurrent(context));
    CUdeviceptr there = 0;
    CHECK(cuMemAlloc(&there, kBytes));
    std::vector<char> from(kBytes), back(kBytes + 2 * kMargin);
    for (uint32_t round = 0; round < kRounds; ++round) {
        const uint32_t seed = thread * 1000 + round;
        for (size_t i = 0; i + 4 <= kBytes; i += 4) {
            const uint32_t word = value(i, seed);
            std::memcpy(from.data() + i, &word, 4);
        }
        const size_t left_out = round * 3;  // neither end on a page or a line
        std::memset(back.data(), 0x5a, back.size());
        CHECK(cuMemcpyHtoD(there, from.data() + left_out, kBytes - left_out));
        CHECK(cuMemcpyDtoH(back.data() + kMargin, there, kBytes - left_out));
        REQUIRE(std::memcmp(back.data() + kMargin, from.data() + left_out, kBytes - left_out) == 0);
        for (size_t i = 0; i < kMargin; ++i)
            REQUIRE(back[i] == 0x5a && back[kMargin + kBytes - left_out + i] == 0x5a);
    }
    CHECK(cuMemFree(there));
}

int main() {
    CUcontext context = preload::start();
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([=] { copy_round(context, i); });
    for (std::thread& thread : threads) thread.join();
    std::puts("all there");
    return 0;
}
