// See quarantine.h.
#include "runtime/server/quarantine.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "runtime/journal/journal.h"
#include "runtime/server/borrowed.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/suspension.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

using Rest = std::chrono::microseconds;
constexpr Rest kLookOften = 500us;  // while programs of two groups are at work
constexpr Rest kLook = 2ms;         // while programs of two groups are there
constexpr Rest kIdle = 50ms;
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
    {
        std::lock_guard lock(mutex_);
        list_.blame(tenant, journal::now_ns());
    }
    wake();
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
           (!server_.serves_one_tenant() &&
            list_.why(session.tenant(), journal::now_ns()) != QuarantineList::Why::kNone);
}

std::string Quarantine::group_of(const Session& session) const {
    std::lock_guard lock(mutex_);
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

void Quarantine::arrives(Session& session) {
    {
        std::lock_guard lock(mutex_);
        // Without memory its calls fail, and it is not among those whose gates open.
        if ((!active_ && !contains(session)) || !session.has_memory())
            return session.gate().open(LaneGate::kQuarantine);
    }
    if (!wake()) return session.gate().open(LaneGate::kQuarantine);
    session.gate().close(LaneGate::kQuarantine);
}

// False: there is no thread, so nothing is kept apart.
bool Quarantine::wake() {
    std::string why;
    {
        std::lock_guard lock(mutex_);
        active_ = news_ = true;
        if (!thread_.joinable()) why = thread_.serve({"quarantine", ""}, [this] { run(); });
        active_ = why.empty();
    }
    changed_.notify_all();
    if (!why.empty()) server_.note("tenants are not kept apart: " + why);
    return why.empty();
}

void Quarantine::run() {
    server_.device().enter_thread();
    auto rest = kIdle;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, rest, [this] { return leaves_ || news_; });
            changed_.wait(lock, [this] { return leaves_ || active_; });
            if (leaves_) return;
            news_ = false;
        }
        const Look look = look_at_sessions();
        rest = look.groups < 2 ? kIdle : look.at_work < 2 ? kLook : kLookOften;
        take_turns(look);
        std::lock_guard lock(mutex_);
        active_ = look.any || news_;
    }
}

Quarantine::Look Quarantine::look_at_sessions() {
    Look look;
    std::map<std::string, size_t> working;
    {
        const Borrowed all(server_, server_.borrow_all());
        for (Session* session : all.sessions) {
            const LaneGate& gate = session->gate();
            const bool stands = gate.closed(LaneGate::kSuspended) || gate.closed(LaneGate::kReissued) ||
                                gate.closed(LaneGate::kOutOfTurn);
            const bool closed = gate.closed(LaneGate::kQuarantine);
            uint64_t position = 0;
            const std::string group = group_of(*session);
            working[group] += !stands && session->has_work(closed, &position);
            look.any = look.any || !group.empty();
            look.closed = look.closed || closed;
            if (closed) look.closed_groups.insert(group);
            if (!closed && !session->poisoned() && session->why_not_suspended().empty())
                look.open_groups.insert(group);
        }
    }
    look.groups = working.size();
    std::vector<QuarantineTurns::Group> groups;
    for (const auto& [tenant, count] : working) {
        groups.push_back({tenant, count});
        look.at_work += count != 0;
    }
    std::lock_guard lock(mutex_);
    look.together = !look.any || Clock::now() < together_until_;
    const std::string before = turns_.turn();
    look.turn = look.together ? before : turns_.next(groups, Clock::now());
    look.changed = look.turn != before;
    return look;
}

void Quarantine::take_turns(const Look& look) {
    if (server_.fatal() != CUDA_SUCCESS) return;
    if (look.together) {
        if (look.closed) server_.suspension().open_quarantine();
        return;
    }
    const bool stands = look.open_groups.empty() || look.open_groups == std::set{look.turn};
    if (stands && !look.closed_groups.contains(look.turn)) return;
    const auto begun = Clock::now();
    const std::string problem = server_.suspension().give_turn(
        [&](const Session& session) { return group_of(session) == look.turn; }, kPatience);
    const auto now = Clock::now();
    const bool late = !problem.empty() && now - begun >= kPatience && server_.fatal() == CUDA_SUCCESS;
    if (late) server_.note(fmt::format("tenants cannot be kept apart for {} s: {}", kTogether / 1s, problem));
    std::lock_guard lock(mutex_);
    if (late) together_until_ = now + kTogether;
    if (look.changed) turns_.began(now);
}

}  // namespace smt::runtime::server
