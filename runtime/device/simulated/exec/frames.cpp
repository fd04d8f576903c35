// Calls: frames of registers and local variables, and how parameters travel.
#include <algorithm>

#include "runtime/device/simulated/exec/families/control.h"
#include "runtime/device/simulated/exec/memory.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {
namespace {

// One value from a place of one frame to a place of another, for the lanes of a mask.
struct End {
    const Execution* x;  // whose bases hold the slots
    const Frame* frame;
};

std::byte* lane_of(const End& end, const Place& place, Warp& warp, int lane) {
    if (place.local) return warp.local.at(lane, end.frame->variables + place.offset);
    const size_t stride = place.bytes < 2 ? 2 : place.bytes;
    return end.x->at<std::byte>(place.slot) + stride * static_cast<size_t>(lane);
}

void pass(Warp& warp, uint32_t mask, const End& from, const Place& source, const End& to,
          const Place& target) {
    if (!target.local && target.slot == kSink) return;
    if (source.bytes == 0 && !source.local && !target.local) {  // a predicate
        uint32_t& old = to.x->predicate(target.slot);
        old = (old & ~mask) | (from.x->predicate(source.slot) & mask);
        return;
    }
    const uint32_t bytes = std::min(source.bytes, target.bytes);
    for_lanes(mask, [&](int lane) {
        // A variable may be longer than a piece of local memory: byte by byte is right everywhere.
        if (source.local && target.local) {
            for (uint32_t i = 0; i < bytes; ++i)
                *warp.local.at(lane, to.frame->variables + target.offset + i) =
                    *warp.local.at(lane, from.frame->variables + source.offset + i);
            return;
        }
        std::memcpy(lane_of(to, target, warp, lane), lane_of(from, source, warp, lane), bytes);
    });
}

}  // namespace

uint64_t frame_variables(const Execution& x) { return x.group->frame->variables; }

Frame* Cta::State::new_frame(const Code& code) {
    Frame* frame = nullptr;
    if (!idle_frames_.empty()) {
        frame = idle_frames_.back();
        idle_frames_.pop_back();
        *frame = Frame();
    } else {
        frame = &frames_.emplace_back();
    }
    frame->code = &code;
    const uint32_t bytes = std::max(64u, code.frame_bytes);
    frame->size_class = 32 - std::countl_zero(bytes - 1);
    auto& idle = idle_blocks_[static_cast<size_t>(frame->size_class)];
    if (!idle.empty()) {
        frame->registers = idle.back();
        idle.pop_back();
        return frame;
    }
    // Exactly what is needed for a kernel's frame, which is never reused for another function.
    const size_t size = code.kernel ? bytes : size_t{1} << frame->size_class;
    auto block = std::make_unique<std::byte[]>(size + 64);
    const auto address = reinterpret_cast<uintptr_t>(block.get());
    frame->registers = block.get() + ((address + 63) / 64 * 64 - address);
    blocks_.push_back(std::move(block));
    return frame;
}

void Cta::State::release(Frame* frame) {
    while (frame != nullptr && --frame->users == 0) {
        Frame* caller = frame->caller;
        if (!frame->code->kernel)
            idle_blocks_[static_cast<size_t>(frame->size_class)].push_back(frame->registers);
        idle_frames_.push_back(frame);
        frame = caller;
    }
}

bool Cta::State::push_frame(Execution& x, Warp& warp, Group& group, const Code& code, const Call& call) {
    Frame* caller = group.frame;
    Frame* frame = new_frame(code);
    frame->users = 1;
    frame->caller = caller;  // the group's place in it becomes the frame's
    frame->call = &call;
    frame->return_to = group.pc;
    frame->saved_meet = group.meet;
    frame->variables = round_up(caller->top, 16);
    frame->top = frame->variables + code.local_bytes;
    if (!warp.local.grow(frame->top)) {
        fail(x, Fault::Kind::kStackOverflow, std::countr_zero(group.mask), Space::kNone, 0, 0,
             "stack overflow");
        return false;
    }
    Execution inside = x;
    group.frame = frame;
    group.code = &code;
    bind(inside, warp, group);
    for (size_t i = 0; i < code.parameters.size() && i < call.arguments.size(); ++i)
        pass(warp, group.mask, {&x, caller}, call.arguments[i], {&inside, frame}, code.parameters[i]);
    group.pc = 0;
    group.meet = kNowhere;
    return true;
}

void Cta::State::pop_frame(Execution& x, Warp& warp, Group& group) {
    Frame* frame = group.frame;
    const Code& code = *group.code;
    Execution outside = x;
    group.pc = frame->return_to;
    group.meet = frame->saved_meet;
    group.code = frame->caller->code;
    group.frame = frame->caller;
    bind(outside, warp, group);
    for (size_t i = 0; i < code.results.size() && i < frame->call->results.size(); ++i)
        pass(warp, group.mask, {&x, frame}, code.results[i], {&outside, frame->caller},
             frame->call->results[i]);
    ++frame->caller->users;  // the group is in it now, and not in the callee's
    release(frame);
}

}  // namespace smt::runtime::device::simulated
