#include "runtime/device/cores.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace smt::runtime::device {

namespace {

using Nanoseconds = std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr Nanoseconds kBetweenReadings = 10ms;
constexpr Nanoseconds kLasts = 100ms;  // work on all cores seldom lasts less, and blocks now and then
constexpr long kShortNap = 1'000, kLongNap = 50'000;  // ns
constexpr uint64_t kShortTurn = 100'000;              // ns: the least that Linux grants

// sched_getattr(2)'s, which the C library of Debian 12 does not have.
struct SchedulerAttributes {
    uint32_t size = sizeof(SchedulerAttributes);
    uint32_t policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t turn_ns = 0;  // of SCHED_OTHER; the budget of a deadline thread
    uint64_t deadline_ns = 0;
    uint64_t period_ns = 0;
};

SchedulerAttributes attributes() {
    SchedulerAttributes found;
    return syscall(SYS_sched_getattr, 0, &found, sizeof found, 0) == 0
               ? found
               : SchedulerAttributes{.policy = SCHED_IDLE};
}

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / 1ns; }

bool read_load() {
    static const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    static const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    char text[128];
    const ssize_t bytes = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
    if (bytes <= 0) return false;
    text[bytes] = 0;
    return cores_scarce(text, cores);
}

}  // namespace

bool cores_to_spare() {
    static const bool spare = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 2;
    }();
    return spare;
}

// "0.20 0.18 0.12 3/80 11206": three threads run or want to, the one that reads among them.
bool cores_scarce(const char* load, int cores) {
    const char* const slash = std::strchr(load, '/');
    const char* number = slash;
    while (number && number > load && number[-1] >= '0' && number[-1] <= '9') --number;
    return number != slash && std::strtol(number, nullptr, 10) > cores;
}

bool cores_scarce() {
    static std::atomic<int64_t> again{0};
    static std::atomic<bool> scarce{false};
    const int64_t now = now_ns();
    int64_t due = again.load(std::memory_order_relaxed);
    if (now < due ||
        !again.compare_exchange_strong(due, now + kBetweenReadings.count(), std::memory_order_relaxed))
        return scarce.load(std::memory_order_relaxed);
    const bool found = read_load();
    if (found) again.store(now + kLasts.count(), std::memory_order_relaxed);
    scarce.store(found, std::memory_order_relaxed);
    return found;
}

void nap() {
    static thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1UL);  // or it would be 50 us longer
    static_cast<void>(exact);
    const timespec moment{0, cores_to_spare() && !cores_scarce() ? kShortNap : kLongNap};
    nanosleep(&moment, nullptr);
}

bool ask_for_short_turns() {
    SchedulerAttributes wanted = attributes();
    if (wanted.policy != SCHED_OTHER) return false;
    wanted.turn_ns = kShortTurn;
    return syscall(SYS_sched_setattr, 0, &wanted, 0) == 0;
}

uint64_t turn_ns() { return attributes().turn_ns; }

}  // namespace smt::runtime::device
