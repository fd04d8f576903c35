#include "runtime/dispatch/standstill.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/dispatch/others_turn.h"

namespace smt::runtime::dispatch {

namespace {

constexpr auto kLongest = std::chrono::milliseconds(20);
constexpr auto kPatience = std::chrono::milliseconds(200);    // of a tenant, for all that it frees: PyTorch unloads hundreds of images
constexpr auto kLingers = std::chrono::microseconds(200);   // a round trip to the program and what it does between two calls

}  // namespace

// For who frees something: until a standstill can begin, or where enough is left of one. With the lock but while it sleeps.
void Dispatcher::await_standstill(std::unique_lock<std::mutex>& lock, const Tenant& tenant) {
    if (device_.properties().keeps_clock) return;
    const auto enough_left = [this] { return now() >= still_.not_before || now() + kLongest / 2 <= still_.until; };
    while (anybody_would_stand_still() && !enough_left() && tenant.awaited < kPatience) {
        const schedule::Duration rest = still_.not_before - now();
        tenant.awaited += rest;
        lock.unlock();
        std::this_thread::sleep_for(rest);
        const Wanted wanted(wanted_);
        lock = lock_soon(mutex_);
    }
}

bool Dispatcher::frees_in_standstill(const Tenant& tenant) const {
    return samples() || std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& each) { return each->priority > tenant.priority; });
}

bool Dispatcher::anybody_would_stand_still() const {
    schedule::Kernel kernel;
    return std::any_of(members_.begin(), members_.end(), [&](const Member& each) {
        return !each.trial && each.stream->tenant().stoppable.load(std::memory_order_relaxed) && each.stream->describe(&kernel);
    });
}

uint64_t Dispatcher::begin_standstill(const Tenant& tenant, bool frees) {
    if (!device_.properties().loads_wait) return 0;
    std::unique_lock<std::mutex> lock;
    {
        const Wanted wanted(wanted_);
        lock = lock_soon(mutex_);
    }
    if (frees && !frees_in_standstill(tenant)) return 0;
    if (frees) await_standstill(lock, tenant);
    if (now() >= still_.not_before) still_.told = still_.over = false, allow_standstill();
    const uint64_t number = ++still_.numbers;
    still_.calls.push_back({number, tenant.session, true});
    for (Member& member : members_) {
        schedule::Kernel kernel;
        if (!stands_still(member)) continue;
        if (member.stream->describe(&kernel) && kernel.state == schedule::Kernel::State::kRunning)
            say(member.stream->tenant(), fmt::format("stands still: the driver loads or frees something for {}", tenant.name));
        follow(member);
    }
    look_at_standstill();
    device_.disturb();
    const auto told = [&] { return std::none_of(still_.calls.begin(), still_.calls.end(), [&](const Still::Call& each) { return each.number == number && each.waits; }); };
    if (told()) return number;
    const OthersTurn others(device_);
    if (device_.properties().keeps_clock) told_.wait(lock, told);
    else told_.wait_for(lock, 2 * kLongest, told);   // the dispatcher's thread may be in the driver, or study
    return number;
}

// From now on, and then for as long none.
void Dispatcher::allow_standstill() {
    still_.until = now() + kLongest;
    still_.not_before = still_.until + kLongest;
}

void Dispatcher::end_standstill(uint64_t number) {
    if (number == 0) return;
    const Wanted wanted(wanted_);
    const auto lock = lock_soon(mutex_);
    const auto mine = std::find_if(still_.calls.begin(), still_.calls.end(), [&](const Still::Call& each) { return each.number == number; });
    still_.last = mine->session;
    still_.calls.erase(mine);
    if (!still_.calls.empty()) return;
    still_.lingers = std::min(now() + kLingers, still_.until);
    device_.disturb();
}

// A launch of the tenant that loaded is what all that was for.
void Dispatcher::end_lingering(const Tenant& tenant) {
    if (still_.calls.empty() && still_.last == tenant.session) still_.lingers = {};
}

// The dispatcher's thread between looks, and who begins one.
void Dispatcher::look_at_standstill() {
    const schedule::TimePoint now = this->now();
    if (still_.calls.empty()) {
        if (still_.lingers == schedule::TimePoint{} || now < still_.lingers) return;
        still_.lingers = {};
        return everybody_goes_on();
    }
    const bool lasts = now < still_.until, all = lasts && all_told();
    if (all && !std::exchange(still_.told, true)) allow_standstill();
    if (!lasts && !std::exchange(still_.over, true)) everybody_goes_on();
    if (lasts && !all) return;
    for (Still::Call& each : still_.calls) {
        if (std::exchange(each.waits, false)) device_.let_go(each.session);
    }
    told_.notify_all();
}

bool Dispatcher::anybody_stands_still() const {
    if (still_.calls.empty() && still_.lingers == schedule::TimePoint{}) return false;
    const schedule::TimePoint now = this->now();
    return now < still_.until && (!still_.calls.empty() || now < still_.lingers);
}

bool Dispatcher::stands_still(const Member& member) const {
    return !member.trial && member.stream->tenant().stoppable.load(std::memory_order_relaxed) && anybody_stands_still();
}

bool Dispatcher::all_told() const {
    return std::none_of(members_.begin(), members_.end(), [&](const Member& each) { return each.behind && stands_still(each); });
}

// The policy names everybody whose launches wait and should not. While it studies, orders are those of before.
void Dispatcher::everybody_goes_on() {
    decide();
    for (Member& member : members_) {
        if (studying_) follow(member);
    }
}

}  // namespace smt::runtime::dispatch
