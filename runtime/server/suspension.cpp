// See suspension.h.
#include "runtime/server/suspension.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/memory/tenant_ranges.h"
#include "runtime/server/moving.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/unpinning.h"

namespace smt::runtime::server {

namespace {

using protocol::SuspendReply;
using SuspensionClock = std::chrono::steady_clock;

constexpr auto kRestPoll = std::chrono::milliseconds(1);

uint64_t ns_since(SuspensionClock::time_point begun) {
    return static_cast<uint64_t>(std::chrono::nanoseconds(SuspensionClock::now() - begun).count());
}

SuspendReply finished(SuspendReply reply, const std::string& problem, SuspensionClock::time_point begun) {
    reply.ok = problem.empty();
    reply.took_ns = ns_since(begun);
    std::strncpy(reply.message, problem.c_str(), sizeof reply.message - 1);
    return reply;
}

}  // namespace

SuspendReply Suspension::suspend(const std::string& tenant, std::chrono::milliseconds patience) {
    std::lock_guard turn(turn_);
    const auto begun = SuspensionClock::now();
    Borrowed borrowed(server_, server_.borrow(tenant));
    SuspendReply reply;
    const std::string problem = try_suspend(tenant, borrowed.sessions, patience, &reply);
    return finished(reply, problem, begun);
}

SuspendReply Suspension::resume(const std::string& tenant) {
    std::lock_guard turn(turn_);
    const auto begun = SuspensionClock::now();
    const Borrowed borrowed(server_, server_.borrow(tenant));
    SuspendReply reply;
    const std::string problem = try_resume(tenant, borrowed.sessions, &reply);
    return finished(reply, problem, begun);
}

std::string Suspension::try_suspend(const std::string& tenant, Sessions& sessions,
                                    std::chrono::milliseconds patience, SuspendReply* reply) {
    if (sessions.empty()) return fmt::format("no program of tenant {} runs", tenant);
    const auto is_suspended = [](const Session* each) { return each->gate().closed(LaneGate::kSuspended); };
    if (std::any_of(sessions.begin(), sessions.end(), is_suspended))
        return fmt::format("tenant {} is suspended already", tenant);
    for (const Session* session : sessions)
        if (const std::string why = session->why_not_suspended(); !why.empty())
            return fmt::format("{} is not suspended: {}", session->called(), why);
    server_.unpinning().begin();
    server_.close_gates(tenant);
    for (Session* session : sessions) server_.dispatcher().suspend(session->dispatched_tenant());
    std::string problem = come_to_rest(sessions, patience);
    if (problem.empty()) problem = move_out(sessions, reply);
    if (!problem.empty()) {
        let_go_on(tenant, sessions);
        return problem;
    }
    reply->sessions = static_cast<uint32_t>(sessions.size());
    server_.note(fmt::format("tenant {} is suspended: {} in {} host memory{}, {} stay on the GPU", tenant,
                             in_mebibytes(reply->moved_bytes), reply->pinned ? "pinned" : "pageable",
                             reply->file_bytes ? " and files" : "", in_mebibytes(reply->stay_bytes)));
    return {};
}

// Launches after the gates: one that comes before the dispatcher knows waits there.
void Suspension::let_go_on(const std::string& tenant, const Sessions& sessions) {
    for (const Session* session : sessions) server_.device().let_go(session->id());
    server_.open_gates(tenant);
    const Borrowed all(server_, server_.borrow(tenant));  // with those that began suspended meanwhile
    for (const Session* session : all.sessions)
        if (!session->gate().keeps_back()) server_.dispatcher().resume(session->dispatched_tenant());
}

// Returns those that are closing: their teardown does not wait for what others of the tenant have under way.
void Suspension::leave_out_closing(Sessions& sessions) {
    const auto first = std::stable_partition(sessions.begin(), sessions.end(),
                                             [](const Session* each) { return !each->closing(); });
    const Sessions closing(first, sessions.end());
    sessions.erase(first, sessions.end());
    if (!closing.empty()) server_.give_back(closing);
}

std::string Suspension::come_to_rest(Sessions& sessions, std::chrono::milliseconds patience) {
    const auto until = SuspensionClock::now() + patience;
    for (;;) {
        leave_out_closing(sessions);
        if (server_.fatal() != CUDA_SUCCESS) return "the GPU's context is lost";
        if (sessions.empty()) return "its program has ended";
        std::string runs;
        for (Session* session : sessions) {
            if (runs.empty()) runs = session->runs();
            // Its lanes go on, to tell the error.
            if (!runs.empty() && session->poisoned()) return session->called() + " has ended with an error";
        }
        if (runs.empty()) return {};
        if (SuspensionClock::now() >= until)
            return fmt::format("{} does not end within {:.4g} s: nothing has changed", runs,
                               std::chrono::duration<double>(patience).count());
        std::this_thread::sleep_for(kRestPoll);
    }
}

// All copies are there before the first memory is freed.
std::string Suspension::move_out(const Sessions& sessions, SuspendReply* reply) {
    const auto begun = SuspensionClock::now();
    std::string problem;
    for (Session* session : sessions) {
        const AsGuest guest(*session);
        if (session->closing() || !problem.empty()) continue;
        const ChunkMover::Outcome outcome = session->memory().copy_out();
        if (outcome.status != CUDA_SUCCESS) problem = why_not_moved(outcome) + ": nothing has changed";
    }
    reply->pinned = 1;
    for (Session* session : sessions) {
        const AsGuest guest(*session);
        if (!problem.empty()) {
            session->memory().forget_copies();
            continue;
        }
        session->memory().release_copied();
        reply->moved_bytes += session->memory().bytes_away();
        reply->stay_bytes += session->memory().bytes_used();
        reply->pinned &= session->memory().away_is_pinned();
        reply->file_bytes += session->memory().bytes_in_files();
    }
    if (problem.empty()) server_.device().physical_memory().trim();
    reply->copied_ns = ns_since(begun);
    return problem;
}

std::string Suspension::try_resume(const std::string& tenant, const Sessions& sessions, SuspendReply* reply) {
    if (sessions.empty()) return fmt::format("no program of tenant {} runs", tenant);
    const auto is_suspended = [](const Session* each) { return each->gate().closed(LaneGate::kSuspended); };
    if (std::none_of(sessions.begin(), sessions.end(), is_suspended))
        return fmt::format("tenant {} is not suspended", tenant);
    if (server_.swapper()) {
        for (Session* session : sessions) session->gate().close(LaneGate::kOutOfTurn);
    } else if (const std::string problem = move_in(sessions, reply); !problem.empty()) {
        return fmt::format("{}: tenant {} stays suspended", problem, tenant);
    }
    let_go_on(tenant, sessions);
    reply->sessions = static_cast<uint32_t>(sessions.size());
    server_.note(fmt::format("tenant {} is resumed: {} are on the GPU again", tenant,
                             in_mebibytes(reply->moved_bytes)));
    return {};
}

// Empty: the device has so much free.
std::string Suspension::missing_on_device(uint64_t needed) const {
    TenantRanges::trim_all();
    size_t free = 0, total = 0;
    if (server_.device().physical_memory().room(&free, &total) != CUDA_SUCCESS || free >= needed) return {};
    return fmt::format("{} of GPU memory are missing: it needs {}, and {} are free",
                       in_mebibytes(needed - free), in_mebibytes(needed), in_mebibytes(free));
}

std::string Suspension::move_in(const Sessions& sessions, SuspendReply* reply) {
    const auto begun = SuspensionClock::now();
    uint64_t needed = 0;
    for (const Session* session : sessions) needed += session->bytes_away();
    std::string problem = missing_on_device(needed);
    for (Session* session : sessions) {
        const AsGuest guest(*session);
        if (session->closing() || !problem.empty()) continue;
        const ChunkMover::Outcome outcome = session->memory().bring_in();
        if (outcome.status == CUDA_SUCCESS) continue;
        problem = missing_on_device(needed);  // others took some meanwhile
        if (problem.empty()) problem = why_not_moved(outcome);
    }
    for (Session* session : sessions) {
        const AsGuest guest(*session);
        if (!problem.empty()) {
            session->memory().release_copied();
            continue;
        }
        session->memory().forget_copies();
    }
    reply->moved_bytes = needed;
    reply->copied_ns = ns_since(begun);
    return problem;
}

}  // namespace smt::runtime::server
