// Registered memory: what another thread writes beside it while it is unregistered or the device is reset.
#include <atomic>
#include <cstdint>
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

int main() {
    preload::start();
    contents();
    beside_writes(block.before, unregister);
    beside_writes(block.after, unregister);
    beside_writes(block.before, reset);
}
