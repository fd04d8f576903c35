#include "runtime/dispatch/quiesce.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/dispatch/clock_handoff.h"
#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

Quiesce::Quiesce(Dispatcher& dispatcher, const Tenant& tenant, For what)
    : dispatcher_(dispatcher), number_(dispatcher.begin_quiesce(tenant, what == For::kFree)) {}

Quiesce::~Quiesce() { dispatcher_.end_quiesce(number_); }

// ---- When windows begin and end

auto QuiesceWindows::until_next(TimePoint now) const -> Duration {
    const bool enough_left = now + kWindow / 2 <= until_;
    return enough_left ? Duration::zero() : std::max(Duration::zero(), not_before_ - now);
}

// From now on windows are allowed for kWindow, and then none for as long.
void QuiesceWindows::allow(TimePoint now) {
    until_ = now + kWindow;
    not_before_ = until_ + kWindow;
}

uint64_t QuiesceWindows::begin(uint32_t session, TimePoint now) {
    if (now >= not_before_) told_ = over_ = false, allow(now);
    calls_.push_back({++numbers_, session, true});
    return numbers_;
}

bool QuiesceWindows::waits(uint64_t call) const {
    return std::ranges::any_of(calls_, [&](const Call& each) { return each.number == call && each.waits; });
}

// The thread that tells may be in the driver, or run a study.
void QuiesceWindows::await(uint64_t call, std::unique_lock<std::mutex>& lock, bool as_long_as_it_takes) {
    const auto told = [&] { return !waits(call); };
    if (as_long_as_it_takes)
        goes_on_.wait(lock, told);
    else
        goes_on_.wait_for(lock, 2 * kWindow, told);
}

bool QuiesceWindows::end(uint64_t call, TimePoint now) {
    const auto mine = std::ranges::find_if(calls_, [&](const Call& each) { return each.number == call; });
    last_ = mine->session;
    calls_.erase(mine);
    if (calls_.empty()) lingers_ = std::min(now + kLingers, until_);
    return calls_.empty();
}

void QuiesceWindows::launched(uint32_t session) {
    if (calls_.empty() && last_ == session) lingers_ = {};
}

bool QuiesceWindows::in_force(TimePoint now) const {
    return open() && now < until_ && (!calls_.empty() || now < lingers_);
}

auto QuiesceWindows::look(TimePoint now, bool all_told) -> News {
    News news;
    if (calls_.empty()) {
        news.resumes = open() && now >= lingers_;
        if (news.resumes) lingers_ = {};
        return news;
    }
    const bool lasts = now < until_;
    if (lasts && all_told && !std::exchange(told_, true)) allow(now);
    news.resumes = !lasts && !std::exchange(over_, true);
    for (Call& each : calls_) {
        if ((all_told || !lasts) && std::exchange(each.waits, false)) news.go_on.push_back(each.session);
    }
    if (!news.go_on.empty()) goes_on_.notify_all();
    return news;
}

// ---- What they do to streams

uint64_t Dispatcher::begin_quiesce(const Tenant& tenant, bool frees) {
    if (!device_.properties().loads_wait) return 0;
    WantedMutex::Hold lock = mutex_.hold();
    const bool stops_any = policy().stops == schedule::Policy::Stops::kAny;
    if (frees && !stops_any && !tenants_.any_above(tenant.priority)) return 0;
    if (frees) await_window(lock, tenant);
    end_unasked();
    const uint64_t call = quiesce_.begin(tenant.session, now());
    for (Member& member : members_) {
        schedule::Kernel kernel;
        if (!quiesces(member)) continue;
        if (member.stream->describe(&kernel) && kernel.state == schedule::Kernel::State::kRunning)
            notes_.decision(
                member.stream->tenant(),
                fmt::format("stands still: the driver loads or frees something for {}", tenant.name));
        follow(member);
    }
    look_at_windows();
    device_.disturb();
    if (!quiesce_.waits(call)) return call;
    const ClockHandoff others(device_);
    quiesce_.await(call, lock, device_.properties().keeps_clock);
    return call;
}

// The lock is held, except while it sleeps.
void Dispatcher::await_window(WantedMutex::Hold& lock, const Tenant& tenant) {
    const auto would_stop = [](Member& each) {
        schedule::Kernel kernel;
        return can_quiesce(each) && each.stream->describe(&kernel);
    };
    while (!device_.properties().keeps_clock && tenant.awaited < QuiesceWindows::kMostPerTenant) {
        const schedule::Duration rest = quiesce_.until_next(now());
        if (rest == schedule::Duration::zero() || std::ranges::none_of(members_, would_stop)) return;
        tenant.awaited += rest;
        lock.unlock();
        std::this_thread::sleep_for(rest);
        lock = mutex_.hold();
    }
}

void Dispatcher::end_quiesce(uint64_t call) {
    if (call == 0) return;
    const WantedMutex::Lock lock(mutex_);
    if (quiesce_.end(call, now())) device_.disturb();
}

bool Dispatcher::can_quiesce(const Member& member) {
    return !member.trial && member.stream->tenant().preemptible.load(std::memory_order_relaxed);
}

bool Dispatcher::quiesces(const Member& member) const {
    return can_quiesce(member) && quiesce_.in_force(now());
}

// Called by the dispatcher's thread between looks, and by a thread that begins a window.
void Dispatcher::look_at_windows() {
    if (!quiesce_.open()) return;
    const bool all_told =
        std::ranges::none_of(members_, [&](const Member& each) { return each.behind && quiesces(each); });
    const QuiesceWindows::News news = quiesce_.look(now(), all_told);
    // The policy names all streams that wait and should not. While a study runs, the earlier orders hold.
    if (news.resumes) decide();
    for (Member& member : members_) {
        if (news.resumes && policy_.studying() && !member.trial) follow(member);
    }
    for (const uint32_t session : news.go_on) device_.let_go(session);
}

}  // namespace smt::runtime::dispatch
