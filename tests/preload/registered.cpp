// Registered memory: what another thread writes beside it while it is unregistered or the device is reset,
// and what became of its addresses meanwhile.
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

#include "tests/preload/program.h"

constexpr size_t kPage = 4096;
constexpr size_t kBytes = 64u << 20;

// `before` and `after` are in the first and the last page of `memory`.
struct Block {
    alignas(kPage) char pad[kPage / 2];
    std::atomic<int64_t> before;
    char memory[kBytes];
    std::atomic<int64_t> after;
};
Block block;

// Counts in a number that nothing else writes, and how many writes were undone.
class Counter {
public:
    explicit Counter(std::atomic<int64_t>& number) : number_(number), thread_([this] { count(); }) {}
    ~Counter() {
        over_.store(true);
        thread_.join();
    }
    int64_t lost() const { return lost_.load(); }
    // Until the counter has seen what is there now.
    void catch_up() const {
        const int64_t seen = rounds_.load();
        while (rounds_.load() < seen + 2) std::this_thread::yield();
    }

private:
    void count() {
        for (int64_t mine = number_.load(std::memory_order_relaxed);
             !over_.load(std::memory_order_relaxed);) {
            const int64_t found = number_.load(std::memory_order_relaxed);
            if (found != mine) lost_.fetch_add(mine - found);
            number_.store(mine = found + 1, std::memory_order_relaxed);
            rounds_.fetch_add(1, std::memory_order_relaxed);
        }
    }

    std::atomic<int64_t>& number_;
    std::atomic<bool> over_{false};
    std::atomic<int64_t> lost_{0}, rounds_{0};
    std::thread thread_;
};

int64_t lost_during(const Counter& counter, CUresult (*call)()) {
    counter.catch_up();
    const int64_t before = counter.lost();
    CHECK(call());
    counter.catch_up();
    return counter.lost() - before;
}

// A copy of the whole takes as long as millions of writes. The machine may stop any thread for as long, but
// not in each of the rounds.
void beside_writes(std::atomic<int64_t>& number, CUresult (*take_back)()) {
    constexpr int kRounds = 5;
    constexpr int64_t kFew = 20000;
    int64_t least = INT64_MAX;
    for (int round = 0; round < kRounds; ++round) {
        preload::start();
        CHECK(cuMemHostRegister(block.memory, sizeof block.memory, 0));
        const Counter counter(number);
        const int64_t lost = lost_during(counter, take_back);
        if (lost < least) least = lost;
    }
    std::printf("%lld writes lost at least\n", static_cast<long long>(least));
    REQUIRE(least < kFew);
}

CUresult unregister() { return cuMemHostUnregister(block.memory); }
CUresult reset() { return cuDevicePrimaryCtxReset(0); }

// All pieces in which the pages are exchanged arrive, in their order.
void contents() {
    auto* words = reinterpret_cast<uint64_t*>(block.memory);
    constexpr size_t kWords = kBytes / sizeof(uint64_t);
    for (size_t i = 0; i < kWords; ++i) words[i] = i;
    CHECK(cuMemHostRegister(block.memory, kBytes, 0));
    for (size_t i = 0; i < kWords; i += 100) words[i] = ~i;
    CHECK(cuMemHostUnregister(block.memory));
    for (size_t i = 0; i < kWords; ++i) REQUIRE(words[i] == (i % 100 ? i : ~i));
}

void* map_pages(void* place, size_t bytes, int value) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED : 0);
    void* const pages = mmap(place, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    std::memset(pages, value, bytes);
    return pages;
}

bool all_are(const char* bytes, size_t count, char value) {
    for (size_t i = 0; i < count; ++i)
        if (bytes[i] != value) return false;
    return true;
}

// A part is unmapped and mapped again, a part is moved away, and both before the memory is unregistered.
void addresses_of_others() {
    constexpr size_t kAll = 1u << 20, kPart = kAll / 4;
    auto* const pages = static_cast<char*>(map_pages(nullptr, kAll, 1));
    CHECK(cuMemHostRegister(pages, kAll, 0));
    munmap(pages, kPart);
    map_pages(pages, kPart, 2);
    auto* const moved = static_cast<char*>(
        mremap(pages + 2 * kPart, kPart, kPart, MREMAP_MAYMOVE | MREMAP_FIXED, map_pages(nullptr, kPart, 0)));
    REQUIRE(moved != MAP_FAILED);
    CHECK(cuMemHostUnregister(pages));
    // The arena memory that was behind them serves others.
    auto* const others = static_cast<char*>(map_pages(nullptr, kAll, 3));
    CHECK(cuMemHostRegister(others, kAll, 0));
    std::memset(others, 4, kAll);
    REQUIRE(all_are(pages, kPart, 2) && all_are(pages + kPart, kPart, 1));
    REQUIRE(all_are(pages + 3 * kPart, kPart, 1) && all_are(moved, kPart, 1));
    unsigned char in_core = 0;
    REQUIRE(mincore(pages + 2 * kPart, kPage, &in_core) != 0);  // not mapped
    CHECK(cuMemHostUnregister(others));
    munmap(pages, kAll);
    munmap(others, kAll);
    munmap(moved, kPart);
}

// A buffer that grows while it is registered, as realloc() makes it grow: what is behind its block in the
// arena is not the buffer's.
void grows() {
    constexpr size_t kPart = 1u << 20;
    auto* const small = static_cast<char*>(map_pages(nullptr, kPart, 1));
    CHECK(cuMemHostRegister(small, kPart, 0));
    char* others[4];
    for (char*& each : others) {
        CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&each), kPart, 0));
        std::memset(each, 7, kPart);
    }
    auto* const large = static_cast<char*>(mremap(small, kPart, 4 * kPart, MREMAP_MAYMOVE));
    if (large != MAP_FAILED) {  // else realloc() copies
        REQUIRE(all_are(large, kPart, 1));
        std::memset(large + kPart, 9, 3 * kPart);
    }
    for (char* each : others) {
        REQUIRE(all_are(each, kPart, 7));
        CHECK(cuMemFreeHost(each));
    }
    CHECK(cuMemHostUnregister(small));
    munmap(large != MAP_FAILED ? large : small, large != MAP_FAILED ? 4 * kPart : kPart);
}

int main() {
    preload::start();
    contents();
    grows();
    addresses_of_others();
    beside_writes(block.before, unregister);
    beside_writes(block.after, unregister);
    beside_writes(block.before, reset);
}
