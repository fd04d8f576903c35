#include "runtime/dispatch/quiesce.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/dispatch/clock_handoff.h"

namespace smt::runtime::dispatch {

namespace {

constexpr auto kWindow = std::chrono::milliseconds(20);
// Longest wait of a tenant for all that it frees: PyTorch unloads hundreds of images.
constexpr auto kMostPerTenant = std::chrono::milliseconds(200);
// A round trip to the program, and what it does between two calls.
constexpr auto kLingers = std::chrono::microseconds(200);

}  // namespace

// For a call that frees: waits until a window can begin or enough is left of one. The lock is held, except
// while it sleeps.
void Dispatcher::await_quiesce(std::unique_lock<std::mutex>& lock, const Tenant& tenant) {
    if (device_.properties().keeps_clock) return;
    const auto enough_left = [this] {
        return now() >= quiesce_.not_before || now() + kWindow / 2 <= quiesce_.until;
    };
    while (any_would_quiesce() && !enough_left() && tenant.awaited < kMostPerTenant) {
        const schedule::Duration rest = quiesce_.not_before - now();
        tenant.awaited += rest;
        lock.unlock();
        std::this_thread::sleep_for(rest);
        const Wanted wanted(wanted_);
        lock = spin_lock(mutex_);
    }
}

bool Dispatcher::frees_in_quiesce(const Tenant& tenant) const {
    return samples() || std::any_of(tenants_.begin(), tenants_.end(),
                                    [&](const auto& each) { return each->priority > tenant.priority; });
}

bool Dispatcher::any_would_quiesce() const {
    schedule::Kernel kernel;
    return std::any_of(members_.begin(), members_.end(), [&](const Member& each) {
        return !each.trial && each.stream->tenant().preemptible.load(std::memory_order_relaxed) &&
               each.stream->describe(&kernel);
    });
}

uint64_t Dispatcher::begin_quiesce(const Tenant& tenant, bool frees) {
    if (!device_.properties().loads_wait) return 0;
    std::unique_lock<std::mutex> lock;
    {
        const Wanted wanted(wanted_);
        lock = spin_lock(mutex_);
    }
    if (frees && !frees_in_quiesce(tenant)) return 0;
    if (frees) await_quiesce(lock, tenant);
    if (now() >= quiesce_.not_before) quiesce_.told = quiesce_.over = false, allow_quiesce();
    const uint64_t number = ++quiesce_.numbers;
    quiesce_.calls.push_back({number, tenant.session, true});
    for (Member& member : members_) {
        schedule::Kernel kernel;
        if (!quiesces(member)) continue;
        if (member.stream->describe(&kernel) && kernel.state == schedule::Kernel::State::kRunning)
            say(member.stream->tenant(),
                fmt::format("stands still: the driver loads or frees something for {}", tenant.name));
        follow(member);
    }
    poll_quiesce();
    device_.disturb();
    const auto told = [&] {
        return std::none_of(
            quiesce_.calls.begin(), quiesce_.calls.end(),
            [&](const QuiesceState::Call& each) { return each.number == number && each.waits; });
    };
    if (told()) return number;
    const ClockHandoff others(device_);
    if (device_.properties().keeps_clock) told_.wait(lock, told);
    // The dispatcher's thread may be in the driver, or run a study.
    else
        told_.wait_for(lock, 2 * kWindow, told);
    return number;
}

// From now on windows are allowed for kWindow, and then none for as long.
void Dispatcher::allow_quiesce() {
    quiesce_.until = now() + kWindow;
    quiesce_.not_before = quiesce_.until + kWindow;
}

void Dispatcher::end_quiesce(uint64_t number) {
    if (number == 0) return;
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    const auto mine = std::find_if(quiesce_.calls.begin(), quiesce_.calls.end(),
                                   [&](const QuiesceState::Call& each) { return each.number == number; });
    quiesce_.last = mine->session;
    quiesce_.calls.erase(mine);
    if (!quiesce_.calls.empty()) return;
    quiesce_.lingers = std::min(now() + kLingers, quiesce_.until);
    device_.disturb();
}

// The window serves the launch of the tenant that loaded, so it ends with that.
void Dispatcher::end_lingering(const Tenant& tenant) {
    if (quiesce_.calls.empty() && quiesce_.last == tenant.session) quiesce_.lingers = {};
}

// Called by the dispatcher's thread between looks, and by a thread that begins a window.
void Dispatcher::poll_quiesce() {
    const schedule::TimePoint now = this->now();
    if (quiesce_.calls.empty()) {
        if (quiesce_.lingers == schedule::TimePoint{} || now < quiesce_.lingers) return;
        quiesce_.lingers = {};
        return resume_all();
    }
    const bool lasts = now < quiesce_.until, all = lasts && all_told();
    if (all && !std::exchange(quiesce_.told, true)) allow_quiesce();
    if (!lasts && !std::exchange(quiesce_.over, true)) resume_all();
    if (lasts && !all) return;
    for (QuiesceState::Call& each : quiesce_.calls) {
        if (std::exchange(each.waits, false)) device_.let_go(each.session);
    }
    told_.notify_all();
}

bool Dispatcher::any_quiesces() const {
    if (quiesce_.calls.empty() && quiesce_.lingers == schedule::TimePoint{}) return false;
    const schedule::TimePoint now = this->now();
    return now < quiesce_.until && (!quiesce_.calls.empty() || now < quiesce_.lingers);
}

bool Dispatcher::quiesces(const Member& member) const {
    return !member.trial && member.stream->tenant().preemptible.load(std::memory_order_relaxed) &&
           any_quiesces();
}

bool Dispatcher::all_told() const {
    return std::none_of(members_.begin(), members_.end(),
                        [&](const Member& each) { return each.behind && quiesces(each); });
}

// The policy names all streams that wait and should not. While a study runs, the earlier orders hold.
void Dispatcher::resume_all() {
    decide();
    for (Member& member : members_) {
        if (studying_) follow(member);
    }
}

}  // namespace smt::runtime::dispatch
