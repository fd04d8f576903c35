#include "interpose/driver/copy_thread.h"

#include <sched.h>

#include <atomic>

#include "interpose/driver/host_pages.h"
#include "interpose/process/own_thread.h"
#include "interpose/transport/waiting.h"

namespace smt::interpose::driver {
namespace {

// Measured: handing over a half and taking it back costs a third of a microsecond, the time to copy 4 KiB.
constexpr uint64_t kWorthTwo = 96u << 10;

// How long the thread polls for the next piece before it sleeps, and how long the caller polls for the
// thread's end before it lets others run: the thread may have lost its processor.
constexpr uint64_t kLookNanoseconds = 100'000;
constexpr uint32_t kIdleMilliseconds = 10'000;

enum Step : uint32_t { kNothing, kOffered, kTaken, kDone };

struct Half {
    CopyBytes copy;
    char* to;
    const char* from;
    uint64_t count;

    void run() const { copy(to, from, count); }
};

constinit std::atomic<bool> in_use{false};  // set by a caller; guards `half` and the thread's start
constinit std::atomic<uint32_t> step{kNothing};
constinit std::atomic<bool> asleep{false};
constinit Half half{};

enum class Thread : uint8_t { kUntried, kRuns, kNone };
constinit Thread thread = Thread::kUntried;

bool take(Step from, Step to) {
    uint32_t expected = from;
    return step.compare_exchange_strong(expected, to, std::memory_order_acq_rel);
}

void* copy_thread(void*) {
    uint64_t idle_since = now_nanoseconds();
    while (true) {
        if (take(kOffered, kTaken)) {
            half.run();
            step.store(kDone, std::memory_order_release);
            idle_since = now_nanoseconds();
        } else if (now_nanoseconds() - idle_since < kLookNanoseconds) {
            pause_cpu();
        } else {
            asleep.store(true);
            const uint32_t seen = step.load();
            if (seen != kOffered) futex_wait(step, seen, kIdleMilliseconds);
            asleep.store(false);
            idle_since = now_nanoseconds();
        }
    }
}

bool start() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2) return false;
    return start_own_thread(copy_thread);
}

bool acquire() {
    if (in_use.exchange(true, std::memory_order_acquire)) return false;
    if (thread == Thread::kUntried) thread = start() ? Thread::kRuns : Thread::kNone;
    if (thread == Thread::kRuns) return true;
    in_use.store(false, std::memory_order_release);
    return false;
}

void await_done() {
    const uint64_t since = now_nanoseconds();
    Naps naps;
    while (step.load(std::memory_order_acquire) != kDone) {
        if (now_nanoseconds() - since < kLookNanoseconds)
            pause_cpu();
        else
            naps.nap();
    }
}

}  // namespace

void copy_on_two_cores(CopyBytes copy, char* to, const char* from, uint64_t count) {
    if (count < kWorthTwo || !acquire()) return copy(to, from, count);
    const uint64_t mine = count / 2 / kPage * kPage;
    half = {copy, to + mine, from + mine, count - mine};
    step.store(kOffered);
    if (asleep.load() && asleep.exchange(false)) futex_wake(step);
    copy(to, from, mine);
    if (take(kOffered, kNothing)) {
        half.run();
    } else {
        await_done();
        step.store(kNothing, std::memory_order_relaxed);
    }
    in_use.store(false, std::memory_order_release);
}

}  // namespace smt::interpose::driver
