// Divergence: groups part, meet, leave (warp.h has the picture).
#include <algorithm>
#include <span>

#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {
namespace {

// Backward branches after which a group lets others run: long enough that a lopsided loop is not torn
// apart. A warp whose threads were seen to wait for each other is given less: it will spin again.
constexpr uint32_t kMostSteps = 20'000;
constexpr uint32_t kLittlePatience = 500;

}  // namespace

Group* Cta::State::new_group() {
    if (!idle_groups_.empty()) {
        Group* group = idle_groups_.back();
        idle_groups_.pop_back();
        *group = Group();
        return group;
    }
    return &groups_.emplace_back();
}

Group* Cta::State::child_of(Warp& warp, Group& parent, uint32_t mask, uint32_t pc, uint32_t meet) {
    Group* child = new_group();
    child->code = parent.code;
    child->frame = parent.frame;
    ++child->frame->users;
    child->pc = pc;
    child->mask = mask;
    child->meet = meet;
    child->parent = &parent;
    ++parent.children;
    if (parent.state != Group::State::kParent) {
        parent.state = Group::State::kParent;
        std::erase(warp.leaves, &parent);
    }
    warp.leaves.push_back(child);
    return child;
}

void Cta::State::pick(Warp& warp) {
    const auto find = [&]() -> Group* {
        for (auto at = warp.leaves.rbegin(); at != warp.leaves.rend(); ++at)
            if ((*at)->state == Group::State::kRunnable) return *at;
        return nullptr;
    };
    warp.current = find();
    if (warp.current == nullptr && unstick(warp)) warp.current = find();
    const uint32_t bit = 1u << warp.number;
    runnable = warp.current != nullptr && !fault ? runnable | bit : runnable & ~bit;
}

void Cta::State::branch(Execution& x, uint32_t taken, uint32_t target, uint32_t meet) {
    Group& group = *x.group;
    if (taken == 0) return;
    const bool backward = target < group.pc;
    const uint32_t next = group.pc;
    if (taken == group.mask) {
        group.pc = target;
    } else {
        x.left = true;
        const Way ways[] = {{taken, target}, {group.mask & ~taken, next}};
        diverge(*x.warp, group, ways, meet);
    }
    if (backward && ++x.warp->turns > (x.warp->spins ? kLittlePatience : kMostSteps)) {
        if (!x.left && group.pc == group.meet) return;  // it ends here anyway
        yield(*x.warp);
    }
}

void Cta::State::diverge(Warp& warp, Group& group, std::span<const Way> ways, uint32_t meet) {
    if (meet == group.meet || meet == kNowhere) {
        // Siblings: the group takes the last way itself.
        for (size_t i = 0; i + 1 < ways.size(); ++i) {
            if (ways[i].pc == group.meet && group.parent != nullptr)
                continue;  // already there: its parent has them
            Group* sibling = new_group();
            *sibling = group;
            sibling->mask = ways[i].mask;
            sibling->pc = ways[i].pc;
            ++sibling->frame->users;
            if (sibling->parent != nullptr) ++sibling->parent->children;
            warp.leaves.push_back(sibling);
        }
        group.mask = ways.back().mask;
        group.pc = ways.back().pc;
        if (group.pc == group.meet) settle(warp, &group);
        pick(warp);
        return;
    }
    group.pc = meet;
    for (const Way& way : ways)
        if (way.pc != meet) child_of(warp, group, way.mask, way.pc, meet);
    if (group.children == 0) settle(warp, &group);
    pick(warp);
}

void Cta::State::end_group(Warp& warp, Group* group) {
    std::erase(warp.leaves, group);
    release(group->frame);
    *group = Group();
    idle_groups_.push_back(group);
}

// One child less; the last one wakes the parent.
void Cta::State::leave_parent(Warp& warp, Group* parent) {
    if (parent == nullptr || --parent->children != 0) return;
    parent->mask &= ~warp.exited;
    parent->state = Group::State::kRunnable;
    if (parent->mask == 0) {
        Group* above = parent->parent;
        end_group(warp, parent);
        leave_parent(warp, above);
        return;
    }
    warp.leaves.push_back(parent);
    if (parent->pc == parent->meet) settle(warp, parent);
}

void Cta::State::settle(Warp& warp, Group* group) {
    Group* parent = group->parent;
    if (group->pc == group->meet && parent != nullptr) {
        end_group(warp, group);  // the parent has its threads
        leave_parent(warp, parent);
        warp.turns = 0;
    }
    pick(warp);
}

void Cta::State::exit_threads(Warp& warp, Group& group, uint32_t lanes) {
    warp.exited |= lanes;
    group.mask &= ~lanes;
    if (group.mask == 0) {
        Group* parent = group.parent;  // before the group is reused
        end_group(warp, &group);
        leave_parent(warp, parent);
    }
    if (warp.alive() == 0) --living;
    check_collectives(warp);
    check_barriers();
    pick(warp);
}

// Threads of a parent that have reached the meeting place.
uint32_t Cta::State::arrived(const Warp& warp, const Group& parent) const {
    uint32_t away = 0;
    for (const Group& group : groups_)
        if (group.parent == &parent) away |= group.mask;
    return parent.mask & ~away & ~warp.exited;
}

// Its waiting threads go on as a group of their own, its children end where it would have ended.
void Cta::State::dissolve(Warp& warp, Group& parent) {
    const uint32_t waiting = arrived(warp, parent);
    for (Group& group : groups_) {
        if (group.parent != &parent) continue;
        group.parent = parent.parent;
        if (parent.parent != nullptr) ++parent.parent->children;
        // A child inside a call ends at the meeting place when it is back in the parent's frame.
        uint32_t* meet = &group.meet;
        for (Frame* frame = group.frame; frame != parent.frame; frame = frame->caller)
            meet = &frame->saved_meet;
        *meet = parent.meet;
    }
    parent.children = 0;
    parent.mask = waiting;
    parent.state = Group::State::kRunnable;
    warp.leaves.push_back(&parent);
}

// When all groups wait for other threads, those at a meeting place may be the ones: they go on alone.
bool Cta::State::unstick(Warp& warp) {
    for (Group* leaf : warp.leaves) {
        for (Group* parent = leaf->parent; parent != nullptr; parent = parent->parent) {
            if (arrived(warp, *parent) == 0) continue;
            dissolve(warp, *parent);
            return true;
        }
    }
    return false;
}

void Cta::State::yield(Warp& warp) {
    warp.turns = 0;
    Group* group = warp.current;
    if (group == nullptr) return;
    for (Group* parent = group->parent; parent != nullptr; parent = parent->parent) {
        if (arrived(warp, *parent) == 0) continue;
        dissolve(warp, *parent);
        warp.spins = true;
        break;
    }
    std::erase(warp.leaves, group);
    warp.leaves.insert(warp.leaves.begin(), group);
    pick(warp);
}

}  // namespace smt::runtime::device::simulated
