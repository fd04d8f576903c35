// Suspension of one session, for turns, and what it has in common with that of tenants.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "runtime/server/exchange.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/memory/tenant_ranges.h"
#include "runtime/server/moving.h"
#include "runtime/server/suspension.h"

namespace smt::runtime::server {

namespace {

using TurnClock = std::chrono::steady_clock;

}  // namespace

std::string in_mebibytes(uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string why_not_moved(const ChunkMover::Outcome& outcome) {
    if (!outcome.block.why.empty()) return outcome.block.why;
    if (outcome.block.missing)
        return fmt::format("{} of host memory are missing", in_mebibytes(outcome.block.missing));
    return fmt::format("{} fails with error {}", outcome.failed, static_cast<int>(outcome.status));
}

void Suspension::open(Session& session, LaneGate::Reason reason) {
    server_.device().let_go(session.id());
    session.gate().open(reason);
    if (!session.gate().keeps_back()) server_.dispatcher().resume(session.dispatched_tenant());
}

std::string Suspension::give_turn(const Has& has_turn, std::chrono::milliseconds patience) {
    constexpr auto kReason = LaneGate::kQuarantine;
    std::lock_guard turn(turn_);
    {
        // Those that were held back before are looked at again: a session may have come with work.
        Borrowed leaving(server_, server_.borrow_if([&](const Session& each) {
            return !has_turn(each) && !each.poisoned() && each.why_not_suspended().empty();
        }));
        Sessions fresh;
        for (Session* session : leaving.sessions) {
            if (!session->gate().closed(kReason)) fresh.push_back(session);
            session->gate().close(kReason);
            server_.dispatcher().suspend(session->dispatched_tenant());
        }
        std::string problem = come_to_rest(leaving.sessions, patience);
        if (leaving.sessions.empty() || problem.empty()) problem = await_ending(has_turn, patience);
        for (Session* session : leaving.sessions) {
            const bool is_fresh = std::find(fresh.begin(), fresh.end(), session) != fresh.end();
            if (problem.empty())
                session->streams().note_rest();  // before a fault could ask
            else if (is_fresh)
                open(*session, kReason);
        }
        if (!problem.empty()) return problem;
    }
    const Borrowed coming(server_, server_.borrow_if(has_turn));
    for (Session* session : coming.sessions)
        if (session->gate().closed(kReason)) open(*session, kReason);
    return {};
}

// Programs that have ended may have kernels under way.
std::string Suspension::await_ending(const Has& has_turn, std::chrono::milliseconds patience) const {
    const auto until = TurnClock::now() + patience;
    for (;;) {
        std::string ends;
        server_.each_session([&](Session& each) {
            const bool over = !each.closing() && !each.poisoned();
            if (!over && !has_turn(each) && !each.stuck() && each.streams().work()) ends = each.called();
        });
        if (ends.empty() || server_.fatal() != CUDA_SUCCESS) return {};
        if (TurnClock::now() >= until) return ends + " has ended, and its work has not";
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void Suspension::open_quarantine() {
    std::lock_guard turn(turn_);
    const Borrowed all(server_, server_.borrow_if([](const Session& each) {
        return each.gate().closed(LaneGate::kQuarantine);
    }));
    for (Session* session : all.sessions) open(*session, LaneGate::kQuarantine);
}

// Empty: its calls wait, and its work is at rest. Without sessions: it has ended.
std::string Suspension::stop_for_turn(Sessions& sessions, std::chrono::milliseconds patience, bool* was_out) {
    if (sessions.empty()) return "its program has ended";
    Session& session = *sessions.front();
    *was_out = session.gate().closed(LaneGate::kOutOfTurn);
    if (session.gate().closed(LaneGate::kSuspended)) return "it is suspended";
    if (std::string why = session.why_not_suspended(); !why.empty()) return why;
    session.gate().close(LaneGate::kOutOfTurn);
    server_.dispatcher().suspend(session.dispatched_tenant());
    std::string problem = come_to_rest(sessions, patience);
    if (!problem.empty() && !sessions.empty() && !*was_out) open(session, LaneGate::kOutOfTurn);
    return problem;
}

Suspension::Moved Suspension::move_out(uint32_t number, uint64_t bytes, std::chrono::milliseconds patience) {
    std::lock_guard turn(turn_);
    Borrowed borrowed(server_, server_.borrow(number));
    const auto begun = TurnClock::now();
    bool was_out = false;
    Moved moved;
    moved.problem = stop_for_turn(borrowed.sessions, patience, &was_out);
    if (!moved.problem.empty()) return moved;
    Session& session = *borrowed.sessions.front();
    moved.rest = TurnClock::now() - begun;
    {
        const AsGuest guest(session);
        move_groups_out(session, bytes, moved, [](uint64_t) { return true; });
    }
    moved.took = TurnClock::now() - begun - moved.rest;
    if (session.bytes_away() == 0 && !was_out) open(session, LaneGate::kOutOfTurn);
    return moved;
}

Suspension::Moved Suspension::move_in(uint32_t number) {
    std::lock_guard turn(turn_);
    const Borrowed borrowed(server_, server_.borrow(number));
    if (borrowed.sessions.empty()) return {.problem = "its program has ended"};
    Session& session = *borrowed.sessions.front();
    Moved moved;
    const auto begun = TurnClock::now();
    moved.bytes = session.bytes_away();
    {
        const AsGuest guest(session);
        const ChunkMover::Outcome outcome = session.memory().bring_in();
        if (outcome.status != CUDA_SUCCESS) {
            moved.problem = missing_on_device(moved.bytes);
            moved.no_room = !moved.problem.empty();
            if (moved.problem.empty()) moved.problem = why_not_moved(outcome);
            session.memory().release_copied();
            return moved;
        }
        session.memory().forget_copies();
        moved.copying = outcome.copying;
        moved.mapping = outcome.mapping;
    }
    moved.took = TurnClock::now() - begun;
    open(session, LaneGate::kOutOfTurn);
    return moved;
}

Suspension::Exchanged Suspension::exchange(uint32_t leaves, uint64_t bytes, uint32_t comes,
                                           std::chrono::milliseconds patience) {
    std::lock_guard turn(turn_);
    Borrowed leaving(server_, server_.borrow(leaves));
    const auto begun = TurnClock::now();
    bool was_out = false;
    Exchanged both;
    both.out.problem = stop_for_turn(leaving.sessions, patience, &was_out);
    if (!both.out.problem.empty()) return both;
    Session& session = *leaving.sessions.front();
    both.out.rest = TurnClock::now() - begun;
    const Borrowed coming(server_, server_.borrow(comes));
    Session* const other = coming.sessions.empty() ? nullptr : coming.sessions.front();
    if (!other || other->gate().closed(LaneGate::kSuspended))
        both.without_other = true;
    else
        Exchange(server_, session, *other).run(bytes, both);
    if (session.bytes_away() == 0 && !was_out) open(session, LaneGate::kOutOfTurn);
    if (both.came) open(*other, LaneGate::kOutOfTurn);
    return both;
}

}  // namespace smt::runtime::server
