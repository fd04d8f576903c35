#include "runtime/device/simulated/exec/cta.h"

#include <fmt/format.h>

#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {

Cta::State::State(const Launch& launch, Dim3 index, Memory& memory, Environment& environment)
    : launch(launch),
      index(index),
      memory(memory),
      environment(environment),
      warps((launch.block.count() + kLanes - 1) / kLanes) {
    const DecodedKernel& kernel = *launch.kernel;
    const uint32_t own = kernel.static_shared + launch.dynamic_shared;
    shared_begin = kernel.code->program->reserved_shared ? 0 : kReservedBytes;
    shared.resize(kReservedBytes + (kernel.code->program->reserved_shared ? round_up(own, 128) : own));
    set_values();
    x.bases[static_cast<size_t>(Slot::Base::kCta)] = reinterpret_cast<std::byte*>(values.data());
    x.cta = this;
    for (uint32_t i = 0; i < warps.size(); ++i) start_warp(warps[i], i);
}

void Cta::State::set_values() {
    const DecodedKernel& kernel = *launch.kernel;
    const auto set = [&](CtaValue value, uint32_t to) {
        for (size_t i = 0; i < kLanes; ++i) values[static_cast<size_t>(value) * kLanes + i] = to;
    };
    set(CtaValue::kNtidX, launch.block.x);
    set(CtaValue::kNtidY, launch.block.y);
    set(CtaValue::kNtidZ, launch.block.z);
    set(CtaValue::kCtaX, index.x);
    set(CtaValue::kCtaY, index.y);
    set(CtaValue::kCtaZ, index.z);
    set(CtaValue::kNctaX, launch.grid.x);
    set(CtaValue::kNctaY, launch.grid.y);
    set(CtaValue::kNctaZ, launch.grid.z);
    set(CtaValue::kWarps, static_cast<uint32_t>(warps.size()));
    set(CtaValue::kSm, environment.sm());
    set(CtaValue::kSms, environment.sms());
    set(CtaValue::kGridLow, static_cast<uint32_t>(launch.id));
    set(CtaValue::kGridHigh, static_cast<uint32_t>(launch.id >> 32));
    set(CtaValue::kSharedTotal, round_up(kernel.static_shared + launch.dynamic_shared, 128));
    set(CtaValue::kSharedDynamic, launch.dynamic_shared);
    set(CtaValue::kDynamicBase, kReservedBytes + kernel.static_shared);
    set(CtaValue::kEnvironment1, static_cast<uint32_t>(launch.grid_workspace >> 32));
    set(CtaValue::kEnvironment2, static_cast<uint32_t>(launch.grid_workspace));
    set(CtaValue::kReserved1, kReservedUsed / 2);
    set(CtaValue::kReservedEnd, kReservedUsed);
    set(CtaValue::kReservedCap, kReservedBytes);
    set(CtaValue::kOne, 1);
}

void Cta::State::start_warp(Warp& warp, uint32_t number) {
    const uint64_t threads = launch.block.count();
    warp.number = number;
    const auto set = [&](WarpValue value, uint32_t lane, uint32_t to) {
        warp.values[static_cast<size_t>(value) * kLanes + lane] = to;
    };
    Dim3 at = thread_index(warp, 0);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const uint32_t bit = 1u << lane;
        if (number * kLanes + lane < threads) warp.present |= bit;
        set(WarpValue::kTidX, lane, at.x);
        set(WarpValue::kTidY, lane, at.y);
        set(WarpValue::kTidZ, lane, at.z);
        set(WarpValue::kLane, lane, lane);
        set(WarpValue::kWarp, lane, number);
        set(WarpValue::kMaskEq, lane, bit);
        set(WarpValue::kMaskLt, lane, bit - 1);
        set(WarpValue::kMaskLe, lane, bit | (bit - 1));
        set(WarpValue::kMaskGe, lane, ~(bit - 1));
        set(WarpValue::kMaskGt, lane, ~(bit | (bit - 1)));
        if (++at.x < launch.block.x) continue;  // the next thread, as thread_index() has it
        at.x = 0;
        if (++at.y < launch.block.y) continue;
        at.y = 0;
        ++at.z;
    }
    Group* group = new_group();
    group->code = launch.kernel->code;
    group->mask = warp.present;
    group->frame = new_frame(*group->code);
    group->frame->users = 1;
    group->frame->top = group->code->local_bytes;
    warp.local.grow(group->frame->top);
    warp.leaves.push_back(group);
    ++living;
    pick(warp);
}

Dim3 Cta::State::thread_index(const Warp& warp, int lane) const {
    const uint32_t linear = warp.number * kLanes + static_cast<uint32_t>(lane);
    const Dim3& block = launch.block;
    return {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
}

void Cta::State::bind(Execution& x, Warp& warp, Group& group) const {
    x.bases[static_cast<size_t>(Slot::Base::kFrame)] = group.frame->registers;
    x.bases[static_cast<size_t>(Slot::Base::kConstants)] = group.code->constant_base;
    x.bases[static_cast<size_t>(Slot::Base::kWarp)] = reinterpret_cast<std::byte*>(warp.values.data());
    x.warp = &warp;
    x.group = &group;
}

Step Cta::State::step(int number) {
    Warp& warp = warps[static_cast<size_t>(number)];
    Group& group = *warp.current;
    const Instruction& in = group.code->instructions[group.pc];
    bind(x, warp, group);
    x.mask = group.mask;
    if (in.guarded) x.mask &= in.negated ? ~x.predicate(in.guard) : x.predicate(in.guard);
    x.left = false;
    x.step = {Step::Result::kRan,
              in.unit,
              in.space,
              in.store,
              in.atomic,
              static_cast<uint8_t>(std::popcount(x.mask)),
              0,
              0};
    ++group.pc;
    if (x.mask != 0 || in.always) in.run(x, in);
    if (fault) {
        runnable = 0;
        x.step.result = Step::Result::kFault;
        return x.step;
    }
    if (!x.left && group.pc == group.meet) settle(warp, &group);
    if (warp.current == nullptr)
        x.step.result = warp.alive() == 0 ? Step::Result::kExited : Step::Result::kBarrier;
    return x.step;
}

namespace {

const char* name_of(Space space) {
    switch (space) {
        case Space::kGlobal:
            return "global";
        case Space::kLocal:
            return "local";
        case Space::kShared:
            return "shared";
        case Space::kConstant:
            return "constant";
        case Space::kParameter:
            return "parameter";
        case Space::kNone:
            break;
    }
    return "";
}

// As cuda.h numbers them; this library does not need the header.
int result_of(Fault::Kind kind) {
    switch (kind) {
        case Fault::Kind::kOutOfBounds:
        case Fault::Kind::kFreed:
        case Fault::Kind::kHeap:
            return 700;  // CUDA_ERROR_ILLEGAL_ADDRESS
        case Fault::Kind::kMisaligned:
            return 716;  // CUDA_ERROR_MISALIGNED_ADDRESS
        case Fault::Kind::kBadCall:
            return 718;  // CUDA_ERROR_INVALID_PC
        case Fault::Kind::kBadBarrier:
            return 715;  // CUDA_ERROR_ILLEGAL_INSTRUCTION
        case Fault::Kind::kAssert:
            return 710;  // CUDA_ERROR_ASSERT
        case Fault::Kind::kStackOverflow:
        case Fault::Kind::kBadBranch:
        case Fault::Kind::kTrap:
            return 719;  // CUDA_ERROR_LAUNCH_FAILED
    }
    return 719;
}

}  // namespace

void Cta::State::fail(Execution& x, Fault::Kind kind, int lane, Space space, uint64_t address, uint32_t bytes,
                      const std::string& what) {
    if (fault) return;
    Fault made;
    made.kind = kind;
    made.kernel = launch.kernel->name;
    made.cta = index;
    made.thread = thread_index(*x.warp, lane);
    const Group& group = *x.group;
    made.line = group.code->instructions[group.pc == 0 ? 0 : group.pc - 1].line;
    made.space = space;
    made.address = address;
    made.bytes = bytes;
    made.result = result_of(kind);
    std::string access;
    if (space != Space::kNone)
        access = fmt::format(" of {} bytes at {} address {:#x}", bytes, name_of(space), address);
    made.message = fmt::format("{}{} in kernel {}, block ({},{},{}), thread ({},{},{}), PTX line {}", what,
                               access, made.kernel, index.x, index.y, index.z, made.thread.x, made.thread.y,
                               made.thread.z, made.line);
    fault = std::move(made);
}

// ---- Cta

Cta::Cta(const Launch& launch, Dim3 index, Memory& memory, Environment& environment)
    : state_(std::make_unique<State>(launch, index, memory, environment)) {}
Cta::~Cta() = default;

int Cta::warps() const { return static_cast<int>(state_->warps.size()); }
uint32_t Cta::runnable() const { return state_->runnable; }

const StaticFacts* Cta::next(int warp) const {
    if ((state_->runnable >> warp & 1) == 0) return nullptr;
    const Group& group = *state_->warps[static_cast<size_t>(warp)].current;
    return &group.code->facts[group.pc];
}

Step Cta::step(int warp) { return state_->step(warp); }
bool Cta::finished() const { return state_->living == 0; }
const Fault* Cta::fault() const { return state_->fault ? &*state_->fault : nullptr; }
bool Cta::deadlocked() const { return state_->runnable == 0 && state_->living != 0 && !state_->fault; }

int Cta::line(int warp) const {
    const Warp& w = state_->warps[static_cast<size_t>(warp)];
    if (w.leaves.empty()) return 0;
    const Group& group = *(w.current != nullptr ? w.current : w.leaves.back());
    return group.code->instructions[group.pc == 0 || w.current != nullptr ? group.pc : group.pc - 1].line;
}

}  // namespace smt::runtime::device::simulated
