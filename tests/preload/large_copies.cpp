// Copies of pageable memory so large that two cores share them, by several threads at once, of which one at
// a time gets the second core: every byte arrives, nothing beside the destination changes. Short ones behind
// a wait, and others beside them.
#include <atomic>
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

// A stream waits for what the program writes later. Short copies behind the wait are enqueued, and copies in
// other streams are made, whatever becomes of one of them.
void copies_behind_a_wait(CUcontext context) {
    constexpr size_t kShort = 1000, kCopies = 100, kFailing = 50, kMost = 200'000;
    constexpr int kFull = 3;  // so many copies take six of the seven other slots, two each
    CUstream waits = nullptr, goes = nullptr;
    CHECK(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&goes, CU_STREAM_NON_BLOCKING));
    CUdeviceptr there = 0, other = 0;
    CHECK(cuMemAlloc(&there, kShort * kCopies));
    CHECK(cuMemAlloc(&other, kBytes));
    int* words = nullptr;
    CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&words), 2 * sizeof(int), 0));
    words[0] = words[1] = 0;
    CHECK(cuStreamWaitValue32(waits, reinterpret_cast<CUdeviceptr>(words), 1, CU_STREAM_WAIT_VALUE_GEQ));
    std::vector<char> from(kMost), back(kBytes);
    for (size_t i = 0; i < kCopies; ++i) {
        std::memset(from.data(), static_cast<int>(i), kShort);
        CHECK(cuMemcpyHtoDAsync(there + i * kShort, from.data(), kShort, waits));
        if (i != kFailing) continue;
        CHECK(cuMemcpyHtoDAsync(sizeof(int), from.data(), kShort, waits));
        FAILS(cuStreamSynchronize(goes), CUDA_ERROR_INVALID_VALUE);
    }
    // The copies that fill the other slots are behind a wait that ends first.
    CHECK(cuStreamWaitValue32(goes, reinterpret_cast<CUdeviceptr>(words + 1), 1, CU_STREAM_WAIT_VALUE_GEQ));
    std::atomic<bool> full = false;
    std::thread helper([&] {
        CHECK(cuCtxSetCurrent(context));
        while (!full.load()) std::this_thread::yield();
        size_t free = 0, total = 0;
        for (int i = 0; i < 1000; ++i) CHECK(cuMemGetInfo(&free, &total));  // the other thread waits
        __atomic_store_n(words + 1, 1, __ATOMIC_RELEASE);
    });
    for (int i = 0; i < 20; ++i) {
        if (i == kFull) full.store(true);
        std::memset(from.data(), 'a' + i, kMost);
        CHECK(cuMemcpyHtoDAsync(other + i * kMost, from.data(), kMost, goes));
    }
    helper.join();
    CHECK(cuStreamSynchronize(goes));
    CHECK(cuMemcpyDtoH(back.data(), other, kBytes));
    for (size_t i = 0; i < 20 * kMost; ++i) REQUIRE(back[i] == static_cast<char>('a' + i / kMost));
    FAILS(cuStreamQuery(waits), CUDA_ERROR_NOT_READY);
    __atomic_store_n(words, 1, __ATOMIC_RELEASE);
    CHECK(cuStreamSynchronize(waits));
    CHECK(cuMemcpyDtoH(back.data(), there, kShort * kCopies));
    for (size_t i = 0; i < kShort * kCopies; ++i) REQUIRE(back[i] == static_cast<char>(i / kShort));
    CHECK(cuMemFree(there));
    CHECK(cuMemFree(other));
    CHECK(cuMemFreeHost(words));
}

int main() {
    CUcontext context = preload::start();
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([=] { copy_round(context, i); });
    for (std::thread& thread : threads) thread.join();
    copies_behind_a_wait(context);
    std::puts("all there");
    return 0;
}
