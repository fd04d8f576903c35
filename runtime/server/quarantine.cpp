// See quarantine.h.
#include "runtime/server/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/journal/journal.h"
#include "runtime/server/borrowed.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/suspension.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 500us;    // while there are programs to be kept apart
constexpr auto kPatience = 5s;   // for work that does not stop between two blocks
constexpr auto kTogether = 10s;  // where it did not come to its end

}  // namespace

Quarantine::~Quarantine() {
    {
        std::lock_guard lock(mutex_);
        leaves_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Quarantine::fault(const std::set<std::string>& suspects) {
    std::lock_guard lock(mutex_);
    list_.fault(suspects, journal::now_ns());
}

void Quarantine::blame(const std::string& tenant) {
    std::lock_guard lock(mutex_);
    list_.blame(tenant, journal::now_ns());
}

void Quarantine::save(protocol::StateWriter& out) const {
    std::lock_guard lock(mutex_);
    list_.save(out);
}

void Quarantine::restore(protocol::Reader& in) {
    std::lock_guard lock(mutex_);
    list_.restore(in, journal::now_ns());
}

bool Quarantine::contains(const Session& session) const {
    return session.wants_quarantine() ||
           list_.why(session.tenant(), journal::now_ns()) != QuarantineList::Why::kNone;
}

std::string Quarantine::group_of(const Session& session) const {
    return contains(session) ? session.tenant() : std::string();
}

bool Quarantine::holds(const Session& session) const {
    std::lock_guard lock(mutex_);
    return contains(session);
}

bool Quarantine::names(const std::string& tenant) const {
    std::lock_guard lock(mutex_);
    return list_.why(tenant, journal::now_ns()) != QuarantineList::Why::kNone;
}

bool Quarantine::arrives(Session& session) {
    std::lock_guard lock(mutex_);
    const bool waits = session.gate().closed(LaneGate::kReissued);  // it is looked at again when it goes on
    if (waits || (!active_ && !contains(session))) return session.gate().open(LaneGate::kQuarantine), false;
    news_ = true;
    if (!std::exchange(active_, true)) start();
    if (!active_ || Clock::now() < together_until_ || group_of(session) == turns_.turn()) return false;
    session.gate().close(LaneGate::kQuarantine);
    return true;
}

// Caller holds mutex_. Without a thread nothing is kept apart.
void Quarantine::start() {
    changed_.notify_all();
    if (thread_.joinable()) return;
    const std::string why = thread_.serve({"quarantine", ""}, [this] { run(); });
    if (why.empty()) return;
    active_ = false;
    server_.note("tenants are not kept apart: " + why);
}

void Quarantine::run() {
    server_.device().enter_thread();
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, kLook, [this] { return leaves_; });
            changed_.wait(lock, [this] { return leaves_ || active_; });
            if (leaves_) return;
            news_ = false;
        }
        const bool any = take_turns();
        std::lock_guard lock(mutex_);
        active_ = any || news_;
    }
}

Quarantine::Look Quarantine::look_at(const std::vector<Session*>& sessions) const {
    Look look;
    std::map<std::string, size_t> working{{"", 0}};
    for (Session* session : sessions) {
        uint64_t position = 0;
        const bool works = session->has_work(session->gate().closed(LaneGate::kQuarantine), &position);
        std::lock_guard lock(mutex_);
        const std::string group = group_of(*session);
        look.any = look.any || !group.empty();
        working[group] += works;
    }
    for (auto& [tenant, count] : working) look.groups.push_back({tenant, count});
    return look;
}

void Quarantine::open_all(const std::vector<Session*>& sessions) {
    server_.suspension().let_go_on(sessions, LaneGate::kQuarantine);
}

bool Quarantine::take_turns() {
    if (server_.fatal() != CUDA_SUCCESS) return false;
    Borrowed all(server_, server_.borrow_all());
    const Look look = look_at(all.sessions);
    std::string turn;
    {
        std::lock_guard lock(mutex_);
        const Clock::time_point now = Clock::now();
        turn = turns_.next(look.groups, now);
        if (!look.any || now < together_until_) return open_all(all.sessions), look.any;
    }
    const auto middle = std::stable_partition(all.sessions.begin(), all.sessions.end(), [&](Session* each) {
        std::lock_guard lock(mutex_);
        return group_of(*each) == turn;
    });
    Borrowed others(server_, {middle, all.sessions.end()});
    all.sessions.erase(middle, all.sessions.end());
    if (hold_back(others.sessions)) open_all(all.sessions);
    return true;
}

// Those that are not held back yet. False: the GPU's context is lost.
bool Quarantine::hold_back(std::vector<Session*>& sessions) {
    const auto begun = Clock::now();
    const auto middle = std::stable_partition(sessions.begin(), sessions.end(), [](Session* each) {
        return each->gate().closed(LaneGate::kQuarantine) || each->poisoned() ||
               !each->why_not_suspended().empty();
    });
    Borrowed leaving(server_, {middle, sessions.end()});
    sessions.erase(middle, sessions.end());
    if (leaving.sessions.empty()) return true;
    const std::string problem =
        server_.suspension().hold_back(leaving.sessions, LaneGate::kQuarantine, kPatience);
    if (server_.fatal() != CUDA_SUCCESS) return false;
    const auto now = Clock::now();
    if (problem.empty() || now - begun < kPatience) return true;
    server_.note(fmt::format("tenants cannot be kept apart for {} s: {}", kTogether / 1s, problem));
    std::lock_guard lock(mutex_);
    together_until_ = now + kTogether;
    return true;
}

}  // namespace smt::runtime::server
