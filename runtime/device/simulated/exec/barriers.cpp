// Threads that wait for each other: the CTA's barriers, and instructions a warp executes together.
//
// A barrier counts warps: one has arrived when all of its threads that have not exited are there, and
// counts as 32 threads whatever it has. So a barrier never waits for exited threads.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/device/simulated/exec/families/synchronization.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {

void Cta::State::barrier_arrive(Execution& x, const Instruction& in, uint32_t id, uint32_t threads, bool wait,
                                uint32_t votes) {
    const int lane = std::countr_zero(x.mask);
    if (id >= barriers.size())
        return fail(x, Fault::Kind::kBadBarrier, lane, Space::kNone, 0, 0,
                    fmt::format("barrier {} does not exist", id));
    if (threads % kLanes != 0)
        return fail(x, Fault::Kind::kBadBarrier, lane, Space::kNone, 0, 0,
                    fmt::format("barrier {} waits for {} threads, which is no multiple of 32", id, threads));
    Barrier& barrier = barriers[id];
    if (barrier.used && barrier.expected != threads)
        return fail(
            x, Fault::Kind::kBadBarrier, lane, Space::kNone, 0, 0,
            fmt::format("barrier {} waits for {} threads and now for {}", id, barrier.expected, threads));
    barrier.used = true;
    barrier.expected = threads;
    if (barrier.arrived.empty()) barrier.arrived.resize(warps.size());
    barrier.arrived[x.warp->number] |= x.mask;
    barrier.votes += static_cast<uint32_t>(std::popcount(votes & x.mask));
    barrier.voters += static_cast<uint32_t>(std::popcount(x.mask));
    if (wait) {
        Group& group = *x.group;
        group.state = Group::State::kAtBarrier;
        group.waits_at = &in;
        group.waiting = x.mask;
        group.barrier = id;
        x.left = true;
    }
    if (is_complete(barrier)) complete(barrier, id);
    if (wait) pick(*x.warp);
}

bool Cta::State::is_complete(const Barrier& barrier) const {
    uint32_t counted = 0;
    for (const Warp& warp : warps) {
        const uint32_t here = barrier.arrived[warp.number];
        const bool all = (warp.alive() & ~here) == 0;
        if (barrier.expected == 0 && !all) return false;
        if (all && here != 0) counted += kLanes;
    }
    return counted >= std::max(1u, barrier.expected);
}

void Cta::State::complete(Barrier& barrier, uint32_t id) {
    const uint32_t votes = barrier.votes;
    const uint32_t voters = barrier.voters;
    std::fill(barrier.arrived.begin(), barrier.arrived.end(), 0);
    barrier.used = false;
    barrier.votes = barrier.voters = 0;
    for (Warp& warp : warps) {
        bool woken = false;
        for (size_t i = 0; i < warp.leaves.size(); ++i) {
            Group& group = *warp.leaves[i];
            if (group.state != Group::State::kAtBarrier || group.barrier != id) continue;
            Execution there = x;
            bind(there, warp, group);
            there.mask = group.waiting;
            barrier_result(there, *group.waits_at, votes, voters);
            group.state = Group::State::kRunnable;
            woken = true;
        }
        if (!woken) continue;
        // Those that were released at the end of a branch's way are done there.
        for (size_t i = 0; i < warp.leaves.size();) {
            Group* group = warp.leaves[i];
            if (group->state == Group::State::kRunnable && group->pc == group->meet &&
                group->parent != nullptr) {
                settle(warp, group);
                i = 0;
            } else {
                ++i;
            }
        }
        pick(warp);
    }
}

void Cta::State::check_barriers() {
    for (uint32_t id = 0; id < barriers.size(); ++id)
        if (barriers[id].used && is_complete(barriers[id])) complete(barriers[id], id);
}

// ---- within a warp

void Cta::State::run_collective(Execution& x, const Instruction& in, const Collective& collective,
                                uint32_t members) {
    Group& group = *x.group;
    // Threads of the group that the guard keeps away do not come later either.
    const uint32_t missing = members & x.warp->alive() & ~group.mask;
    if (missing == 0) {
        Exchange exchange;
        exchange.lanes = x.mask;
        collective.gather(x, in, exchange);
        collective.compute(in, exchange);
        collective.scatter(x, in, exchange);
        return;
    }
    group.state = Group::State::kAtSync;
    group.waits_at = &in;
    group.waiting = x.mask;
    group.members = members;
    x.left = true;
    check_collectives(*x.warp);
    pick(*x.warp);
}

namespace {

bool together(const Group& a, const Group& b) {
    return b.state == Group::State::kAtSync && a.members == b.members && a.waits_at->run == b.waits_at->run &&
           a.waits_at->value == b.waits_at->value && a.waits_at->target == b.waits_at->target;
}

}  // namespace

void Cta::State::check_collectives(Warp& warp) {
    for (size_t i = 0; i < warp.leaves.size(); ++i) {
        Group& first = *warp.leaves[i];
        if (first.state != Group::State::kAtSync) continue;
        uint32_t here = 0;
        std::array<Group*, kLanes> partners{};
        size_t count = 0;
        for (Group* other : warp.leaves) {
            if (!together(first, *other)) continue;
            here |= other->mask;
            partners[count++] = other;
        }
        if ((first.members & warp.alive() & ~here) != 0) continue;
        const Collective& collective = collective_of(*first.waits_at);
        Exchange exchange;
        Execution each = x;
        const auto at = [&](Group* group) {
            bind(each, warp, *group);
            each.mask = group->waiting;
        };
        for (size_t k = 0; k < count; ++k) {
            at(partners[k]);
            exchange.lanes |= each.mask;
            collective.gather(each, *partners[k]->waits_at, exchange);
        }
        collective.compute(*first.waits_at, exchange);
        for (size_t k = 0; k < count; ++k) {
            at(partners[k]);
            collective.scatter(each, *partners[k]->waits_at, exchange);
            partners[k]->state = Group::State::kRunnable;
        }
        for (size_t k = 0; k < count; ++k)
            if (partners[k]->pc == partners[k]->meet) settle(warp, partners[k]);
        pick(warp);
        i = static_cast<size_t>(-1);  // the list has changed
    }
}

}  // namespace smt::runtime::device::simulated
