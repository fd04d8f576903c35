// See exchange.h.
#include "runtime/server/exchange.h"

#include <algorithm>
#include <utility>

#include "runtime/dispatch/clock_handoff.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/moving.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

namespace {

using ExchangeClock = std::chrono::steady_clock;

// So large that what each group costs beside its copies does not count, and small for the gigabytes that
// move.
constexpr uint64_t kGroupBytes = 256ull << 20;

}  // namespace

void move_groups_out(Session& session, uint64_t bytes, Suspension::Moved& moved,
                     const std::function<bool(uint64_t)>& goes_on) {
    TenantMemory& memory = session.memory();
    const TenantMemory::Chunks chunks = memory.choose(bytes, &moved.freed);
    for (auto next = chunks.begin(); next != chunks.end();) {
        TenantMemory::Chunks group;
        for (uint64_t size = 0; next != chunks.end() && size < kGroupBytes; size += next++->bytes)
            group.push_back(*next);
        const uint64_t before = memory.bytes_away();
        const ChunkMover::Outcome outcome = memory.copy_out(group);
        moved.pinning += outcome.making_host_memory;
        moved.copying += outcome.copying;
        if (outcome.status != CUDA_SUCCESS) moved.problem = why_not_moved(outcome);
        const auto copied = ExchangeClock::now();
        memory.release_copied();
        moved.mapping += ExchangeClock::now() - copied;
        const uint64_t released = memory.bytes_away() - before;
        moved.bytes += released;
        if (!moved.problem.empty() || !goes_on(released)) break;
    }
    memory.forget_copies();
}

void Exchange::run(uint64_t bytes, Suspension::Exchanged& both) {
    const auto begun = ExchangeClock::now();
    size_t free = 0, total = 0;
    if (server_.device().physical_memory().room(&free, &total) == CUDA_SUCCESS) room_ = free;
    find_groups();
    Thread other;
    const bool at_once = other
                             .start(
                                 {"exchange", comes_.tenant()}, [&] { bring_in(both.in); },
                                 [this](const std::string&) { fail_in(); })
                             .empty();
    const EndOfOut end(*this);
    {
        const AsGuest guest(leaves_);
        move_groups_out(leaves_, bytes, both.out,
                        [&](uint64_t released) { return !at_once || goes_on(released); });
    }
    const auto out = ExchangeClock::now();
    end_out(both.out.freed + (at_once ? 0 : both.out.bytes));
    if (at_once) {
        const dispatch::ClockHandoff others(server_.device());
        other.join();
    } else {
        bring_in(both.in);
    }
    both.out.took = out - begun;
    both.in.took = ExchangeClock::now() - out;
    both.came = comes_.bytes_away() == 0;
}

void Exchange::find_groups() {
    const TenantMemory& memory = comes_.memory();
    for (const uint64_t base : memory.away()) {
        if (groups_.empty() || groups_.back().bytes >= kGroupBytes) groups_.emplace_back();
        groups_.back().bases.push_back(base);
        groups_.back().bytes += memory.bytes_away(base);
    }
    if (!groups_.empty()) wanted_ = groups_.front().bytes;
}

// The other program's thread.
void Exchange::bring_in(Suspension::Moved& in) {
    server_.device().enter_thread();
    const AsGuest guest(comes_);
    TenantMemory& memory = comes_.memory();
    for (size_t i = 0; i < groups_.size() && in.problem.empty() && await_room(i); ++i) {
        const ChunkMover::Outcome outcome = memory.bring_in(groups_[i].bases);
        in.copying += outcome.copying;
        in.mapping += outcome.mapping;
        if (outcome.status == CUDA_SUCCESS)
            in.bytes += groups_[i].bytes;
        else
            in.problem = why_not_moved(outcome);
        in.no_room = outcome.status == CUDA_ERROR_OUT_OF_MEMORY;
        memory.forget_copies();
    }
    if (!in.problem.empty()) fail_in();
}

void Exchange::fail_in() {
    {
        std::lock_guard lock(mutex_);
        in_fails_ = true;
    }
    changed_.notify_all();
}

void Exchange::end_out(uint64_t room) {
    {
        std::lock_guard lock(mutex_);
        room_ += room;
        out_over_ = true;
    }
    changed_.notify_all();
}

// False: there will not be enough.
bool Exchange::await_room(size_t group) {
    const dispatch::ClockHandoff others(server_.device());
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return room_ >= groups_[group].bytes || out_over_; });
    if (room_ < groups_[group].bytes) return false;
    room_ -= groups_[group].bytes;
    wanted_ = group + 1 < groups_.size() ? groups_[group + 1].bytes : 0;
    changed_.notify_all();
    return true;
}

// On the thread of the one that leaves. False: what it would make room for does not come.
bool Exchange::goes_on(uint64_t released) {
    const dispatch::ClockHandoff others(server_.device());
    std::unique_lock lock(mutex_);
    room_ += released;
    changed_.notify_all();
    changed_.wait(lock, [&] { return in_fails_ || wanted_ == 0 || room_ < wanted_; });
    return !in_fails_;
}

}  // namespace smt::runtime::server
