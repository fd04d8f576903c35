#include "runtime/device/simulated/machine/multiprocessor.h"

#include <algorithm>

#include "runtime/device/simulated/machine/block_scheduler.h"

namespace smt::runtime::device::simulated {

namespace {

constexpr uint32_t kPartitionWarps = kMostWarps / kPartitions;
constexpr uint32_t kPartitionRegisters = kRegisters / kPartitions;

const UnitTimes& times(Unit unit) { return kUnitTimes[static_cast<size_t>(unit)]; }

}  // namespace

Multiprocessor::Multiprocessor(uint32_t index, MemorySystem& memory, Listener& listener)
    : index_(index), memory_(memory), listener_(listener) {}
Multiprocessor::~Multiprocessor() = default;
Multiprocessor::Multiprocessor(Multiprocessor&&) noexcept = default;

int Multiprocessor::room(const Partition& partition, uint32_t warp_registers) const {
    const uint32_t slots = kPartitionWarps - static_cast<uint32_t>(partition.warps.size());
    if (warp_registers == 0) return static_cast<int>(slots);
    return static_cast<int>(std::min(slots, (kPartitionRegisters - partition.registers) / warp_registers));
}

bool Multiprocessor::fits(const BlockNeeds& needs) const {
    if (!needs.possible() || blocks_ == kMostBlocks) return false;
    if (needs.warps() > kMostWarps - warps_) return false;
    if (needs.shared_allocated() > kSharedBytes - shared_ || needs.barriers > kMostBarriers - barriers_)
        return false;
    int free = 0;
    for (const Partition& partition : partitions_) free += room(partition, needs.warp_registers());
    return free >= static_cast<int>(needs.warps());
}

// Each warp goes where there are fewest, so that the sub-partitions stay even.
void Multiprocessor::admit(GridRun& run, Dim3 index, std::unique_ptr<Block> block, Cycle first) {
    const BlockNeeds& needs = run.grid->needs;
    auto resident = std::make_unique<Resident>();
    *resident = {&run, index, std::move(block), {}};
    for (uint32_t i = 0; i < needs.warps(); ++i) {
        Partition* best = nullptr;
        for (Partition& each : partitions_) {
            if (room(each, needs.warp_registers()) == 0) continue;
            if (!best || each.warps.size() < best->warps.size()) best = &each;
        }
        auto warp = std::make_unique<Warp>();
        *warp = {resident.get(),
                 static_cast<int>(i),
                 static_cast<uint32_t>(best - partitions_.data()),
                 static_cast<uint32_t>(best->warps.size()),
                 nullptr,
                 {}};
        look_ahead(*warp, first);
        resident->warps.push_back(warp.get());
        best->registers += needs.warp_registers();
        best->next = std::min(best->next, first);
        best->warps.push_back(std::move(warp));
    }
    ++blocks_;
    warps_ += needs.warps();
    shared_ += needs.shared_allocated();
    barriers_ += needs.barriers;
    residents_.push_back(std::move(resident));
    next_ = std::min(next_, first);
}

void Multiprocessor::remove(Resident& resident) {
    const BlockNeeds& needs = resident.run->grid->needs;
    for (const Warp* warp : resident.warps) partitions_[warp->partition].registers -= needs.warp_registers();
    for (Partition& partition : partitions_) {
        if (std::erase_if(partition.warps, [&](const auto& warp) { return warp->resident == &resident; }))
            close_up(partition);
    }
    --blocks_;
    warps_ -= needs.warps();
    shared_ -= needs.shared_allocated();
    barriers_ -= needs.barriers;
    std::erase_if(residents_, [&](const auto& each) { return each.get() == &resident; });
}

// Those behind ones that went take their places.
void Multiprocessor::close_up(Partition& partition) {
    uint32_t place = 0;
    for (const auto& warp : partition.warps) {
        partition.ready[place] = partition.ready[warp->place];
        partition.unit[place] = partition.unit[warp->place];
        warp->place = place++;
    }
}

void Multiprocessor::drop(const GridRun& run) {
    for (size_t i = residents_.size(); i-- > 0;) {
        if (residents_[i]->run == &run) remove(*residents_[i]);
    }
}

void Multiprocessor::run(Cycle now) {
    for (Partition& partition : partitions_) {
        if (partition.next > now) continue;
        if (Warp* warp = choose(partition, now)) {
            partition.next = now + 1;
            issue(partition, *warp, now);
        }
    }
    next_ = kNever;
    for (const Partition& partition : partitions_) next_ = std::min(next_, partition.next);
}

Multiprocessor::Warp* Multiprocessor::choose(Partition& partition, Cycle now) {
    Cycle next = kNever;
    for (size_t i = 0; i < partition.warps.size(); ++i) {
        const Cycle can = std::max(partition.ready[i], partition.free[partition.unit[i]]);
        if (can <= now) return partition.warps[i].get();
        next = std::min(next, can);
    }
    partition.next = next;
    return nullptr;
}

void Multiprocessor::issue(Partition& partition, Warp& warp, Cycle now) {
    Resident& resident = *warp.resident;
    const StaticFacts& facts = *warp.facts;
    const Step step = resident.block->step(warp.index);
    GridRun& run = *resident.run;
    ++run.result.instructions;
    run.result.thread_instructions += step.lanes;

    partition.free[static_cast<size_t>(facts.unit)] = now + times(facts.unit).taken;
    const Cycle done = completion(partition, step, now);
    for (const uint16_t slot : facts.writes) {
        if (slot >= warp.scoreboard.size()) warp.scoreboard.resize(slot + 1u);
        warp.scoreboard[slot] = done;
    }
    Cycle earliest = now + 1;
    if (step.unit == Unit::kBranch) earliest = now + times(Unit::kBranch).latency;
    if (step.nanoseconds) earliest = now + cycles_of(step.nanoseconds);
    look_ahead(warp, earliest);
    if (step.unit == Unit::kBarrier || step.result != Step::Result::kRan)
        wake_block(resident, now + kBarrierRelease);

    const uint64_t limit = run.step_limit;
    if (step.result == Step::Result::kFault) {
        listener_.failed(run, GridResult::End::kFault, *resident.block, resident.index, 0);
    } else if (limit && run.result.instructions >= limit) {
        const int line = warp.facts ? resident.block->line(warp.index) : 0;
        listener_.failed(run, GridResult::End::kStepLimit, *resident.block, resident.index, line);
    } else {
        settle(resident, step.result, now);
    }
}

Cycle Multiprocessor::completion(Partition& partition, const Step& step, Cycle now) {
    if (step.unit == Unit::kMemory && step.transactions) return memory_completion(partition, step, now);
    if (step.space == Space::kParameter) return now + kParameterLatency;
    if (step.space == Space::kConstant) return now + kConstantLatency;
    return now + times(step.unit).latency + (step.unit == Unit::kMemory ? 1 : 0);
}

// The load/store units take the next access while the pipe behind them has room.
Cycle Multiprocessor::memory_completion(Partition& partition, const Step& step, Cycle now) {
    Cycle& unit = partition.free[static_cast<size_t>(Unit::kMemory)];
    switch (step.space) {
        case Space::kShared: {
            const Cycle begin = std::max(now, shared_free_);
            shared_free_ = begin + step.transactions;
            unit = std::max(unit, begin);
            return shared_free_ - 1 + kSharedLatency + (step.atomic ? kSharedLatency : 0);
        }
        case Space::kLocal:
            return now + kLocalLatency + (step.transactions + 3u) / 4;
        case Space::kConstant:
            return now + kConstantLatency;
        case Space::kParameter:
            return now + kParameterLatency;
        default:
            break;
    }
    const MemorySystem::Trip trip = memory_.access(now, index_, step.transactions, step.atomic);
    if (trip.served > now + kDeepestQueue) unit = std::max(unit, trip.served - kDeepestQueue);
    return trip.back;
}

// When the warp's next instruction has its operands and may overwrite its results.
void Multiprocessor::look_ahead(Warp& warp, Cycle earliest) {
    Partition& partition = partitions_[warp.partition];
    warp.facts = warp.resident->block->next(warp.index);
    partition.unit[warp.place] = static_cast<uint8_t>(warp.facts ? warp.facts->unit : Unit::kNone);
    if (!warp.facts) {
        partition.ready[warp.place] = kNever;
        return;
    }
    Cycle ready = earliest;
    const auto look_at = [&](std::span<const uint16_t> slots) {
        for (const uint16_t slot : slots) {
            if (slot < warp.scoreboard.size()) ready = std::max(ready, warp.scoreboard[slot]);
        }
    };
    look_at(warp.facts->reads);
    look_at(warp.facts->writes);
    partition.ready[warp.place] = ready;
}

// A barrier may have let warps go that were seen to wait.
void Multiprocessor::wake_block(Resident& resident, Cycle earliest) {
    const uint32_t runnable = resident.block->runnable();
    for (Warp* warp : resident.warps) {
        if (warp->facts || !(runnable >> warp->index & 1)) continue;
        look_ahead(*warp, earliest);
        Partition& partition = partitions_[warp->partition];
        partition.next = std::min(partition.next, partition.ready[warp->place]);
    }
}

void Multiprocessor::settle(Resident& resident, Step::Result result, Cycle now) {
    if (result == Step::Result::kRan) return;
    GridRun& run = *resident.run;
    if (resident.block->finished()) {
        remove(resident);
        listener_.finished(run, index_, now);
    } else if (resident.block->runnable() == 0 && resident.block->deadlocked()) {
        const Dim3 index = resident.index;
        listener_.failed(run, GridResult::End::kDeadlock, *resident.block, index, resident.block->line(0));
    }
}

}  // namespace smt::runtime::device::simulated
