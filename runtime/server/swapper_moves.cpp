// What the swapper's thread moves, what it counts, and what it says of it (swapper.h).
#include <fmt/format.h>

#include "runtime/server/moving.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/swapper.h"

namespace smt::runtime::server {

namespace {

using Time = Suspension::Moved::Time;

// Until a program that found its room taken tries again.
constexpr auto kLater = std::chrono::milliseconds(5);
// For kernels to stop or to end: a program that asks for room may do with less, one that is out cannot.
constexpr std::chrono::seconds kRestForAllocation{10}, kRestForTurn{60};

uint64_t in_microseconds(Time time) { return static_cast<uint64_t>(time / std::chrono::microseconds(1)); }
double in_milliseconds(Time time) { return static_cast<double>(time.count()) / 1e6; }

// Of moves that had to pin memory the speed is not the next one's.
Time for_speed(const Suspension::Moved& moved, Time took) {
    return moved.pinning > moved.took / 8 ? Time{} : took;
}

void add_parts(const Suspension::Moved& moved, protocol::TurnFigures& figures) {
    figures.rest_us += in_microseconds(moved.rest);
    figures.pin_us += in_microseconds(moved.pinning);
    figures.copy_us += in_microseconds(moved.copying);
    figures.map_us += in_microseconds(moved.mapping);
    ++figures.moves;
}

bool has_ended(Server& server, uint32_t session) {
    return Borrowed(server, server.borrow(session)).sessions.empty();
}

}  // namespace

// But for one that has ended, which is no reason to say anything.
void Swapper::stays(uint32_t session, const std::string& why) {
    if (has_ended(server_, session)) return;
    server_.note(why);
    std::lock_guard lock(mutex_);
    Known& known = known_[session];
    known.stays_until = MemoryTurns::Clock::now() + kStays;
    known.why = why;
}

void Swapper::note_out(const Step& step, const Suspension::Moved& moved) {
    {
        std::lock_guard lock(mutex_);
        protocol::TurnFigures& figures = known_[step.id].figures;
        figures.out_bytes += moved.bytes;
        figures.out_us += in_microseconds(moved.took);
        add_parts(moved, figures);
    }
    server_.note(
        fmt::format("{} makes room for {}: {} to host memory in {:.1f} ms, after {:.1f} ms to come to "
                    "rest (copies {:.1f}, with pinning {:.1f}; unmapping {:.1f})",
                    called(step.id), called(step.requester), in_mebibytes(moved.bytes),
                    in_milliseconds(moved.took), in_milliseconds(moved.rest), in_milliseconds(moved.copying),
                    in_milliseconds(moved.pinning), in_milliseconds(moved.mapping)));
}

void Swapper::note_in(const Step& step, const Suspension::Moved& moved, const std::string& after) {
    const TimePoint now = MemoryTurns::Clock::now();
    const MemoryTurns::Duration waited = turns_.waits(step.requester, now);
    turns_.served(step.requester, now);
    if (step.with) answer(step.requester, Answer::kTryAgain);
    server_.note(
        fmt::format("{} has its memory again: {} in {:.1f} ms{} (copies {:.1f}, mapping {:.1f}), "
                    "{:.1f} ms after it asked",
                    called(step.requester), in_mebibytes(moved.bytes), in_milliseconds(moved.took), after,
                    in_milliseconds(moved.copying), in_milliseconds(moved.mapping), in_milliseconds(waited)));
}

void Swapper::count_in(uint32_t session, const Suspension::Moved& moved) {
    std::lock_guard lock(mutex_);
    protocol::TurnFigures& figures = known_[session].figures;
    figures.in_bytes += moved.bytes;
    figures.in_us += in_microseconds(moved.took);
    add_parts(moved, figures);
}

void Swapper::left(const Step& step, const Suspension::Moved& moved) {
    if (moved.bytes == 0 && moved.freed != 0) return;  // which was room enough
    if (moved.bytes != 0) note_out(step, moved);
    if (moved.problem.empty() && moved.bytes != 0) return;
    const std::string why = moved.problem.empty() ? "the driver keeps its memory" : moved.problem;
    stays(step.id, called(step.id) + " is not moved out: " + why);
}

void Swapper::move_out(const Step& step) {
    const bool turn = std::any_of(seen_.begin(), seen_.end(),
                                  [&](const Program& each) { return each.id == step.requester && each.out; });
    const auto patience = turn ? kRestForTurn : kRestForAllocation;
    Suspension::Moved moved = server_.suspension().move_out(step.id, step.bytes + step.ahead, patience);
    if (step.ahead && moved.bytes == 0 &&
        !moved.problem.empty())  // there may be host memory for what is needed
        moved = server_.suspension().move_out(step.id, step.bytes, patience);
    if (moved.bytes >= step.bytes) moved.problem.clear();  // what is more than needed need not go
    turns_.moved(step.requester, moved.bytes, for_speed(moved, moved.took));
    left(step, moved);
}

void Swapper::move_in(const Step& step) {
    const Suspension::Moved moved = server_.suspension().move_in(step.id);
    if (!moved.problem.empty()) return does_not_come(step.id, moved);
    turns_.moved(step.id, moved.bytes, moved.took);
    count_in(step.id, moved);
    note_in(step, moved, "");
}

// An allocation was faster, or something fails.
void Swapper::does_not_come(uint32_t session, const Suspension::Moved& moved) {
    if (moved.no_room) {
        std::lock_guard lock(mutex_);
        later_ = MemoryTurns::Clock::now() + kLater;
        return;
    }
    stays(session, called(session) + " is not moved in: " + moved.problem);
}

// The last step out for a program that is out, and its coming in.
void Swapper::exchange(const Step& step) {
    const Suspension::Exchanged both =
        server_.suspension().exchange(step.id, step.bytes, step.requester, kRestForTurn);
    turns_.moved(step.requester, both.out.bytes + both.in.bytes,
                 for_speed(both.out, both.out.took + both.in.took));
    if (!both.without_other) left(step, both.out);
    if (both.in.bytes) count_in(step.requester, both.in);
    if (!both.in.problem.empty()) does_not_come(step.requester, both.in);
    if (both.came) note_in(step, both.in, " more");
}

// A program that is out and for which no room can be made waits for what people do.
void Swapper::tell_missing(const std::vector<Program>& programs) {
    for (const Program& each : programs) {
        const uint64_t missing = each.out ? turns_.missing(each.id) : 0;
        {
            std::lock_guard lock(mutex_);
            TimePoint& since = known_[each.id].missing_since;
            const TimePoint now = MemoryTurns::Clock::now();
            if (missing == 0) since = {};
            if (missing == 0 || since == kTold) continue;
            if (since == TimePoint{}) since = now;
            if (now < since + kStays) continue;
            since = kTold;
        }
        server_.note(
            fmt::format("{} is out, and cannot come in: {} are missing even with all others out{}. "
                        "End or suspend what has them",
                        called(each.id), in_mebibytes(missing), reasons_beside(each.id, programs)));
    }
}

}  // namespace smt::runtime::server
