#include "runtime/device/held_up.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

namespace smt::runtime::device {

namespace {

using Clock = std::chrono::steady_clock;

struct Entry {
    uint32_t session;
    Clock::time_point since;
    std::string by;
};

struct State {
    std::mutex mutex;
    std::map<uint64_t, Entry> waits;
    std::map<uint32_t, protocol::WaitFigures> over;  // by session
    uint64_t last = 0;
};

// Never destroyed: sessions' threads may outlive main().
State& state() {
    static State& state = *new State;
    return state;
}

thread_local Guest* guest = nullptr;
thread_local const char* wait_name = nullptr;
thread_local LaunchOf launch_of;
thread_local int depth = 0;  // waits of the thread, of which the outermost counts

uint64_t enter(uint32_t session, Clock::time_point since, std::string by) {
    if (session == 0) return 0;
    std::lock_guard lock(state().mutex);
    state().waits[++state().last] = {session, since, std::move(by)};
    return state().last;
}

void add(protocol::WaitFigures& figures, std::chrono::nanoseconds lasted) {
    const auto ns = static_cast<uint64_t>(lasted.count());
    const auto bucket = std::find_if(std::begin(protocol::kWaitBoundsUs), std::end(protocol::kWaitBoundsUs),
                                     [&](uint64_t bound) { return ns <= bound * 1000; });
    ++figures.counts[bucket - std::begin(protocol::kWaitBoundsUs)];
    figures.ns += ns;
}

}  // namespace

HeldUp::HeldUp(uint32_t session, std::string by)
    : number_(enter(session, Clock::now(), std::move(by))), since_(Clock::now()) {
    ++depth;
}

HeldUp::~HeldUp() {
    const Clock::time_point now = Clock::now();
    const bool outermost = --depth == 0;
    std::lock_guard lock(state().mutex);
    const auto found = state().waits.find(number_);
    if (found == state().waits.end()) return;
    if (outermost) add(state().over[found->second.session], now - found->second.since);
    state().waits.erase(found);
}

void HeldUp::change(std::string by) {
    std::lock_guard lock(state().mutex);
    if (auto found = state().waits.find(number_); found != state().waits.end())
        found->second.by = std::move(by);
}

std::chrono::nanoseconds HeldUp::lasted() const { return Clock::now() - since_; }

std::optional<Wait> longest_wait(uint32_t session) {
    std::lock_guard lock(state().mutex);
    for (const auto& [number, entry] : state().waits) {  // the eldest first
        if (entry.session == session) return Wait{Clock::now() - entry.since, entry.by};
    }
    return std::nullopt;
}

protocol::WaitFigures waits_of(uint32_t session) {
    std::lock_guard lock(state().mutex);
    const auto found = state().over.find(session);
    return found == state().over.end() ? protocol::WaitFigures{} : found->second;
}

void forget_waits(uint32_t session) {
    std::lock_guard lock(state().mutex);
    state().over.erase(session);
}

NamedWaits::NamedWaits(const char* name) { wait_name = name; }
NamedWaits::~NamedWaits() { wait_name = nullptr; }
const char* name_of_waits() { return wait_name; }

LaunchesOf::LaunchesOf(const LaunchOf& launch) { launch_of = launch; }
LaunchesOf::~LaunchesOf() { launch_of = {}; }
const LaunchOf& launch_of_thread() { return launch_of; }

Guest* guest_of_thread() { return guest; }
void set_guest_of_thread(Guest* of) { guest = of; }

}  // namespace smt::runtime::device
