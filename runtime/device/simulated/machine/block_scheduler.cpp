#include "runtime/device/simulated/machine/block_scheduler.h"

#include <algorithm>

namespace smt::runtime::device::simulated {

namespace {

Dim3 index_of(uint64_t number, const Dim3& size) {
    return {static_cast<uint32_t>(number % size.x), static_cast<uint32_t>(number / size.x % size.y),
            static_cast<uint32_t>(number / size.x / size.y)};
}

}  // namespace

void BlockScheduler::add(std::shared_ptr<Grid> grid, uint64_t step_limit) {
    auto run = std::make_unique<GridRun>();
    run->step_limit = step_limit;
    run->resident_on.resize(multiprocessors_.size());
    run->result.blocks.resize(multiprocessors_.size());
    run->result.most_resident.resize(multiprocessors_.size());
    auto place = std::find_if(queue_.begin(), queue_.end(),
                              [&](const auto& each) { return each->grid->priority > grid->priority; });
    run->grid = std::move(grid);
    queue_.insert(place, std::move(run));
}

void BlockScheduler::give_out() {
    Cycle first = clock_.now() + kBlockStart;
    for (const auto& run : queue_) {
        while (run->left()) {
            if (!place(*run, first)) {
                if (run->grid->places) break;
                return;
            }
            first += kBlockSpacing;
        }
    }
}

bool BlockScheduler::place(GridRun& run, Cycle first) {
    Multiprocessor* best = nullptr;
    for (Multiprocessor& each : multiprocessors_) {
        if (!run.grid->may_use(static_cast<size_t>(&each - multiprocessors_.data()))) continue;
        if ((!best || each.warps() < best->warps()) && each.fits(run.grid->needs)) best = &each;
    }
    if (!best) return false;
    const auto number = static_cast<uint32_t>(best - multiprocessors_.data());
    const Dim3 index = index_of(run.given, run.grid->size);
    if (run.given++ == 0) run.result.started = clock_.now();
    ++run.resident;
    ++run.result.blocks[number];
    run.result.most_resident[number] = std::max(run.result.most_resident[number], ++run.resident_on[number]);
    auto block = run.grid->begin(index, {&clock_, number, static_cast<uint32_t>(multiprocessors_.size())});
    best->admit(run, index, std::move(block), first);
    return true;
}

bool BlockScheduler::finished(GridRun& run, uint32_t multiprocessor) {
    --run.resident;
    --run.resident_on[multiprocessor];
    return run.left() == 0 && run.resident == 0;
}

GridRun* BlockScheduler::find(const Grid& grid) const {
    auto found = std::find_if(queue_.begin(), queue_.end(),
                              [&](const auto& each) { return each->grid.get() == &grid; });
    return found == queue_.end() ? nullptr : found->get();
}

std::unique_ptr<GridRun> BlockScheduler::take(GridRun& run) {
    auto found =
        std::find_if(queue_.begin(), queue_.end(), [&](const auto& each) { return each.get() == &run; });
    std::unique_ptr<GridRun> taken = std::move(*found);
    queue_.erase(found);
    return taken;
}

}  // namespace smt::runtime::device::simulated
