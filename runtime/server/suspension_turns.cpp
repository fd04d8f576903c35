// Suspension of one session, for turns, and what it has in common with that of tenants.
#include <fmt/format.h>

#include "runtime/dispatch/quiesce.h"
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
    if (outcome.missing) return fmt::format("{} of host memory are missing", in_mebibytes(outcome.missing));
    return fmt::format("{} fails with error {}", outcome.failed, static_cast<int>(outcome.status));
}

void forget_copies(Server& server, Session& session) {
    if (session.memory().spare()) return session.memory().forget_copies();
    const dispatch::Quiesce others(server.dispatcher(), session.dispatched(), dispatch::Quiesce::For::kFree);
    session.memory().forget_copies();
}

void Suspension::let_go_on_in_turn(Session& session) {
    server_.device().let_go(session.id());
    session.gate().open(LaneGate::kOutOfTurn);
    if (!session.gate().closed()) server_.dispatcher().resume(session.dispatched_tenant());
}

Suspension::Moved Suspension::move_out(uint32_t number, uint64_t bytes, std::chrono::milliseconds patience) {
    std::lock_guard turn(turn_);
    Borrowed borrowed(server_, server_.borrow(number));
    if (borrowed.sessions.empty()) return {.problem = "its program has ended"};
    Session& session = *borrowed.sessions.front();
    if (session.gate().closed(LaneGate::kSuspended)) return {.problem = "it is suspended"};
    if (const std::string why = session.why_not_suspended(); !why.empty()) return {.problem = why};
    const bool was_out = session.gate().closed(LaneGate::kOutOfTurn);
    session.gate().close(LaneGate::kOutOfTurn);
    server_.dispatcher().suspend(session.dispatched_tenant());
    Moved moved;
    moved.problem = come_to_rest(borrowed.sessions, patience);
    if (borrowed.sessions.empty()) return moved;  // it is closing
    if (moved.problem.empty()) {
        const AsGuest guest(session);
        const auto begun = TurnClock::now();
        const uint64_t before = session.memory().bytes_away();
        const ChunkMover::Outcome outcome = session.memory().copy_out(bytes);
        if (outcome.status == CUDA_SUCCESS) {
            session.memory().release_copied();
            moved.bytes = session.memory().bytes_away() - before;
            session.memory().forget_copies();  // of chunks that the driver did not unmap
        } else {
            moved.problem = why_not_moved(outcome);
            moved.no_host_memory = outcome.missing != 0;
        }
        moved.took = TurnClock::now() - begun;
        moved.making = outcome.making_host_memory;
    }
    if ((!moved.problem.empty() || moved.bytes == 0) && !was_out) let_go_on_in_turn(session);
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
            if (moved.problem.empty()) moved.problem = why_not_moved(outcome);
            session.memory().release_copied();
            return moved;
        }
        session.memory().forget_copies();
    }
    moved.took = TurnClock::now() - begun;
    let_go_on_in_turn(session);
    return moved;
}

}  // namespace smt::runtime::server
