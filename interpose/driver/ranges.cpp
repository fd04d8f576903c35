// The map of address ranges: one sorted array under a reader-writer lock. Look-ups are far more frequent than
// changes, and most programs hold a few hundred ranges. Insertion at the end, the usual case because
// addresses grow, moves nothing.
#include "interpose/driver/ranges.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace smt::interpose::driver {
namespace {

constexpr uint64_t kMaxRanges = 1ull << 20;

struct Map {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    Range* ranges = nullptr;  // kMaxRanges of address space, touched as it fills
    uint64_t count = 0;
    uint64_t last_id = 0;
};
constinit PerSession<Map> maps;

struct Reading {
    explicit Reading(Map& held) : map(held) { pthread_rwlock_rdlock(&map.lock); }
    ~Reading() { pthread_rwlock_unlock(&map.lock); }
    Map& map;
};
struct Writing {
    explicit Writing(Map& held) : map(held) { pthread_rwlock_wrlock(&map.lock); }
    ~Writing() { pthread_rwlock_unlock(&map.lock); }
    Map& map;
};

// Whether `done` says so of a map: of this_session()'s, which comes first, or of another one's.
template <typename Done>
bool in_any_map(Done done) {
    if (done(maps.here())) return true;
    const uint32_t count = several_sessions() ? session_count.load(std::memory_order_acquire) : 0;
    for (uint32_t i = 0; i < count; ++i)
        if (&sessions[i] != thread_session && done(maps.of(sessions[i]))) return true;
    return false;
}

// Index of the first range that ends after `address`.
uint64_t first_after(Map& map, uint64_t address) {
    uint64_t low = 0;
    uint64_t high = map.count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (map.ranges[middle].base + map.ranges[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Range* find_locked(Map& map, uint64_t address) {
    uint64_t at = first_after(map, address);
    return at < map.count && map.ranges[at].holds(address) ? &map.ranges[at] : nullptr;
}

// Replaces ranges [from, to) by `fresh` (none or one).
void splice(Map& map, uint64_t from, uint64_t to, const Range* fresh) {
    uint64_t added = fresh ? 1 : 0;
    std::memmove(map.ranges + from + added, map.ranges + to, (map.count - to) * sizeof(Range));
    if (fresh) map.ranges[from] = *fresh;
    map.count = map.count - (to - from) + added;
}

bool prepare_locked(Map& map) {
    if (map.ranges) return true;
    void* space = mmap(nullptr, kMaxRanges * sizeof(Range), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return false;
    map.ranges = static_cast<Range*>(space);
    return true;
}

}  // namespace

namespace {

CUresult add_locked(Map& map, const Range& range) {
    if (range.bytes == 0 || range.base + range.bytes < range.base) return CUDA_ERROR_INVALID_VALUE;
    if (!prepare_locked(map) || map.count == kMaxRanges) return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t from = first_after(map, range.base);
    uint64_t to = from;
    while (to < map.count && map.ranges[to].base < range.base + range.bytes) ++to;
    Range fresh = range;
    fresh.id = uint64_t{this_session().number()} << 48 | ++map.last_id;
    fresh.session = thread_session;
    splice(map, from, to, &fresh);
    return CUDA_SUCCESS;
}

template <typename Match>
void drop_where(Map& map, Match match) {
    const Writing writing(map);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < map.count; ++i)
        if (!match(map.ranges[i])) map.ranges[kept++] = map.ranges[i];
    map.count = kept;
}

Range* find_opened(Map& map, uint64_t base) {
    Range* found = map.count ? find_locked(map, base) : nullptr;
    return found && found->base == base && found->memory == Memory::kOpened ? found : nullptr;
}

}  // namespace

CUresult add_range(const Range& range) {
    Map& map = maps.here();
    const Writing writing(map);
    return add_locked(map, range);
}

CUresult count_range(const Range& range) {
    Map& map = maps.here();
    const Writing writing(map);
    if (Range* found = find_opened(map, range.base)) return ++found->flags, CUDA_SUCCESS;
    Range fresh = range;
    fresh.flags = 1;
    return add_locked(map, fresh);
}

bool uncount_range(uint64_t base) {
    return in_any_map([=](Map& map) {
        const Writing writing(map);
        Range* found = find_opened(map, base);
        if (!found) return false;
        if (--found->flags != 0) return true;
        const auto at = static_cast<uint64_t>(found - map.ranges);
        splice(map, at, at + 1, nullptr);
        return true;
    });
}

bool find_range(uint64_t address, Range& range) {
    return in_any_map([&](Map& map) {
        const Reading reading(map);
        const Range* found = find_locked(map, address);
        if (found) range = *found;
        return found != nullptr;
    });
}

bool find_overlap(uint64_t base, uint64_t bytes, Range& range) {
    return in_any_map([&](Map& map) {
        const Reading reading(map);
        const uint64_t at = first_after(map, base);
        if (at == map.count || map.ranges[at].base >= base + bytes) return false;
        range = map.ranges[at];
        return true;
    });
}

bool take_range(uint64_t base, Range& range) {
    return in_any_map([&](Map& map) {
        const Writing writing(map);
        const uint64_t at = first_after(map, base);
        if (at == map.count || map.ranges[at].base != base) return false;
        range = map.ranges[at];
        splice(map, at, at + 1, nullptr);
        return true;
    });
}

void drop_ranges(Memory memory, uint64_t handle) {
    drop_where(maps.here(),
               [=](const Range& range) { return range.memory == memory && range.handle == handle; });
}

bool change_range(uint64_t address, void (*change)(Range& range, const void* state), const void* state) {
    return in_any_map([=](Map& map) {
        const Writing writing(map);
        Range* found = find_locked(map, address);
        if (found) change(*found, state);
        return found != nullptr;
    });
}

bool next_range(uint64_t* at, Range& range) {
    Map& map = maps.here();
    const Reading reading(map);
    uint64_t index = first_after(map, *at);
    if (index == map.count) return false;
    range = map.ranges[index];
    *at = range.base + range.bytes;
    return true;
}

void forget_ranges() {
    Map& map = maps.here();
    const Writing writing(map);
    map.count = 0;
}

// Tests readability without reading: sigprocmask refuses an unreadable set before it refuses the invalid
// `how`, and changes nothing either way. The device range is reserved but unreadable.
bool looks_like_device(uint64_t address) {
    constexpr int kSenselessHow = ~0;
    int before = errno;
    syscall(SYS_rt_sigprocmask, kSenselessHow, address & ~7ull, nullptr, 8);
    bool readable = errno != EFAULT;
    errno = before;
    return !readable;
}

}  // namespace smt::interpose::driver
