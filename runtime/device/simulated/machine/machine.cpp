#include "runtime/device/simulated/machine/machine.h"

#include <algorithm>

namespace smt::runtime::device::simulated {

namespace {

Cycle transfer(uint64_t bytes, uint64_t bytes_per_second) {
    return static_cast<Cycle>(static_cast<unsigned __int128>(bytes) * kCyclesPerSecond / bytes_per_second);
}

}  // namespace

Machine::Machine(const MachineConfig& config)
    : config_(config), memory_(config.multiprocessors), scheduler_(*this, multiprocessors_) {
    multiprocessors_.reserve(static_cast<size_t>(config.multiprocessors));
    for (int i = 0; i < config.multiprocessors; ++i) {
        multiprocessors_.emplace_back(static_cast<uint32_t>(i), memory_,
                                      static_cast<Multiprocessor::Listener&>(*this));
    }
}

Machine::~Machine() = default;

void Machine::at(Cycle when, std::function<void()> what) {
    events_.emplace(std::pair{std::max(when, now_), asked_++}, std::move(what));
}

void Machine::launch(std::shared_ptr<Grid> grid) {
    on_the_way_[grid.get()] = false;
    at(now_ + kLaunchLatency, [this, grid = std::move(grid)] {
        scheduler_.add(grid, config_.step_limit);
        if (on_the_way_.extract(grid.get()).mapped()) {
            cancel(*grid);
        } else {
            give_out_at(now_);
        }
    });
}

void Machine::cancel(const Grid& grid) {
    if (auto found = on_the_way_.find(&grid); found != on_the_way_.end()) {
        found->second = true;
        return;
    }
    GridRun* run = scheduler_.find(grid);
    if (!run) return;
    run->result.end = GridResult::End::kCancelled;
    stop(*run);
}

// Within the device a byte is read and written.
void Machine::copy(CopyEngine engine, uint64_t bytes, std::function<void()> done) {
    Cycle& free = engines_[static_cast<size_t>(engine)];
    const uint64_t memory =
        kMemoryBytesPerSecond / kWholeDevice * static_cast<uint64_t>(config_.multiprocessors);
    const uint64_t rate = engine == CopyEngine::kWithin ? memory / 2 : kLinkBytesPerSecond;
    free = std::max(free, now_) + kCopyLatency + transfer(bytes, rate);
    at(free, std::move(done));
}

// One event gives out blocks for everything that ended in a cycle.
void Machine::give_out_at(Cycle when) {
    if (giving_out_ == when) return;
    giving_out_ = when;
    at(when, [this] {
        giving_out_ = kNever;
        scheduler_.give_out();
    });
}

Cycle Machine::next() const {
    Cycle next = events_.empty() ? kNever : events_.begin()->first.first;
    for (const Multiprocessor& each : multiprocessors_) next = std::min(next, each.next());
    return next;
}

bool Machine::advance(Cycle until) {
    const Cycle when = next();
    if (when == kNever) return false;
    now_ = std::max(now_, std::min(when, until));
    if (when > until) return false;
    while (!events_.empty() && events_.begin()->first.first == now_) {
        auto what = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        what();
    }
    for (Multiprocessor& each : multiprocessors_) {
        if (each.next() <= now_) each.run(now_);
    }
    return true;
}

void Machine::finished(GridRun& run, uint32_t multiprocessor, Cycle now) {
    if (scheduler_.finished(run, multiprocessor)) end(run, now + 1);
    give_out_at(now + 1);
}

void Machine::failed(GridRun& run, GridResult::End why, const Block& block, Dim3 index, int line) {
    run.result.end = why;
    run.result.where = index;
    run.result.line = line;
    if (const Fault* fault = block.fault()) run.result.fault = *fault;
    stop(run);
}

void Machine::stop(GridRun& run) {
    for (Multiprocessor& each : multiprocessors_) each.drop(run);
    end(run, now_ + 1);
    give_out_at(now_ + 1);
}

// A drained machine is what the stream's next piece of work waits for.
void Machine::end(GridRun& run, Cycle when) {
    std::shared_ptr<GridRun> taken = scheduler_.take(run);
    taken->result.ended = when;
    at(when + kGridDrain, [taken] { taken->grid->ended(taken->result); });
}

}  // namespace smt::runtime::device::simulated
