// Which block goes where: the queue of real hardware. Grids stand in order of priority, then of
// arrival. The first grid that has blocks left gives them out until one fits nowhere; then all grids
// wait, so a grid behind it gets only what it left over once its last block was given out
// (head-of-line blocking). A grid of higher priority comes first at the next free place: resident
// blocks are never taken away.
//
// A grid that is confined to some multiprocessors (a green context's) waits for these, and holds up no
// grid behind it.
//
// A block goes to the multiprocessor with the fewest resident warps, the first of them.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "runtime/device/simulated/machine/multiprocessor.h"

namespace smt::runtime::device::simulated {

// A grid on its way through the machine.
struct GridRun {
    std::shared_ptr<Grid> grid;
    uint64_t step_limit = 0;
    uint64_t given = 0;  // blocks given out
    uint64_t resident = 0;
    std::vector<uint32_t> resident_on;  // multiprocessor
    GridResult result;

    uint64_t left() const { return grid->size.count() - given; }
};

class BlockScheduler {
public:
    BlockScheduler(const Clock& clock, std::vector<Multiprocessor>& multiprocessors)
        : clock_(clock), multiprocessors_(multiprocessors) {}

    void add(std::shared_ptr<Grid> grid, uint64_t step_limit);
    void give_out();  // what fits now
    // A block of it finished on a multiprocessor; true: it was the grid's last.
    bool finished(GridRun& run, uint32_t multiprocessor);
    std::unique_ptr<GridRun> take(GridRun& run);  // out of the queue, for good
    GridRun* find(const Grid& grid) const;        // null: not in the queue

private:
    bool place(GridRun& run, Cycle first);

    const Clock& clock_;
    std::vector<Multiprocessor>& multiprocessors_;
    std::list<std::unique_ptr<GridRun>> queue_;  // until their last block has ended
};

}  // namespace smt::runtime::device::simulated
