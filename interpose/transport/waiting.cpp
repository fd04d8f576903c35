#include "interpose/transport/waiting.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "interpose/process/session.h"
#include "interpose/transport/call_timer.h"

namespace smt::interpose {

namespace {

// A round trip through the server takes some microseconds, and a futex wake costs as much again, so spinning
// for a few round trips pays. With one or two processors the spinning thread would occupy the core that the
// server needs.
constexpr uint64_t kLongSpin = 40'000;
constexpr uint64_t kShortSpin = 2'000;
constexpr uint64_t kLookOn = 2'000'000;

constinit std::atomic<uint64_t> chosen_spin{0};

}  // namespace

uint64_t spin_nanoseconds() {
    uint64_t spin = chosen_spin.load(std::memory_order_relaxed);
    if (spin != 0) return spin;
    cpu_set_t set;
    CPU_ZERO(&set);
    int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    spin = processors > 2 ? kLongSpin : kShortSpin;
    chosen_spin.store(spin, std::memory_order_relaxed);
    return spin;
}

uint64_t look_on_nanoseconds() { return spin_nanoseconds() == kShortSpin ? 0 : kLookOn; }

bool cores_scarce() {
    const protocol::SessionHeader* const header = this_session().header();
    return header && header->cores_scarce.load(std::memory_order_relaxed) != 0;
}

void Naps::nap() {
    if (slack_ == 0) {
        slack_ = prctl(PR_GET_TIMERSLACK);
        prctl(PR_SET_TIMERSLACK, 1ul);
    }
    const timespec moment{0, 1000};
    syscall(SYS_nanosleep, &moment, nullptr);  // no cancellation point, unlike the C library's nanosleep
}

Naps::~Naps() {
    if (slack_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_));
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t milliseconds) {
    timespec limit{milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, &limit, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

bool spin_word(uint32_t index, uint64_t value) {
    const TimedWait timed(&protocol::CallTimes::word);
    std::atomic<uint64_t>& word = this_session().completion_word(index);
    return look_until([&] { return word.load(std::memory_order_acquire) >= value; });
}

}  // namespace smt::interpose
