#include "runtime/server/memory/room_line.h"

#include <algorithm>

namespace smt::runtime::server {

namespace {

// Memory that is freed in a stream's order comes back without a notice.
constexpr auto kLook = std::chrono::milliseconds(20);

}  // namespace

RoomLine& RoomLine::of_process() {
    static RoomLine line;
    return line;
}

bool RoomLine::may_try(Places::const_iterator place) const {
    return std::none_of(line_.begin(), place, [&](const Place& earlier) {
        return earlier.tenant == place->tenant || earlier.reason == For::kDevice;
    });
}

void RoomLine::wake() {
    std::lock_guard lock(mutex_);
    ++changes_;
    changed_.notify_all();
}

bool RoomLine::wait(const Waiter& waiter) {
    using Clock = std::chrono::steady_clock;
    std::unique_lock lock(mutex_);
    const auto place = line_.insert(line_.end(), {waiter.tenant, waiter.reason});
    waiting_.fetch_add(1, std::memory_order_relaxed);
    bool done = false;
    for (;;) {
        const uint64_t seen = changes_;
        if (may_try(place)) {
            lock.unlock();
            const Tried tried = waiter.attempt();
            lock.lock();
            done = tried == Tried::kDone;
            place->reason = tried == Tried::kNoRoomInLimit ? For::kLimit : For::kDevice;
        }
        const Clock::time_point now = Clock::now();
        if (done || now >= waiter.until || waiter.gives_up()) break;
        changed_.wait_until(lock, std::min(waiter.until, now + kLook), [&] { return changes_ != seen; });
    }
    line_.erase(place);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    ++changes_;
    changed_.notify_all();
    return done;
}

}  // namespace smt::runtime::server
