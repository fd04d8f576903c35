// One multiprocessor: the blocks that are resident, and four sub-partitions that issue their warps.
//
// A warp belongs to the sub-partition where it was placed. In each cycle a sub-partition issues the
// oldest of its warps whose operands are there and whose unit is free: age counts from the block's
// arrival, so that a block that stays for long wins over a newcomer (which is what hardware shows).
// An instruction takes effect when it is issued; its results are usable when the scoreboard says so.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/device/simulated/machine/grid.h"
#include "runtime/device/simulated/machine/memory_system.h"

namespace smt::runtime::device::simulated {

struct GridRun;  // block_scheduler.h

class Multiprocessor {
public:
    // Of a block that came to rest. Called from run(); the block is gone afterwards.
    class Listener {
    public:
        virtual ~Listener() = default;
        virtual void finished(GridRun& run, uint32_t multiprocessor, Cycle now) = 0;
        virtual void failed(GridRun& run, GridResult::End end, const Block& block, Dim3 index, int line) = 0;
    };

    Multiprocessor(uint32_t index, MemorySystem& memory, Listener& listener);
    ~Multiprocessor();
    Multiprocessor(Multiprocessor&&) noexcept;

    bool fits(const BlockNeeds& needs) const;
    uint32_t warps() const { return warps_; }  // resident ones
    void admit(GridRun& run, Dim3 index, std::unique_ptr<Block> block, Cycle first);
    void drop(const GridRun& run);  // every block of it, at once

    Cycle next() const { return next_; }  // when run() has something to do
    void run(Cycle now);

private:
    struct Resident;
    struct Warp {
        Resident* resident;
        int index;  // in its block
        uint32_t partition;
        uint32_t place;                 // among the partition's
        const StaticFacts* facts;       // null: exited, or waits at a barrier
        std::vector<Cycle> scoreboard;  // by register slot
    };
    struct Partition {
        std::vector<std::unique_ptr<Warp>> warps;  // oldest first
        // Of each, side by side, as each cycle reads all: when its operands are there, kNever where it has no
        // next instruction; and the unit of that instruction.
        std::array<Cycle, kMostWarps / kPartitions> ready{};
        std::array<uint8_t, kMostWarps / kPartitions> unit{};
        uint32_t registers = 0;
        std::array<Cycle, std::size(kUnitTimes)> free{};
        Cycle next = kNever;
    };
    struct Resident {
        GridRun* run;
        Dim3 index;
        std::unique_ptr<Block> block;
        std::vector<Warp*> warps;
    };

    Warp* choose(Partition& partition, Cycle now);
    void issue(Partition& partition, Warp& warp, Cycle now);
    Cycle completion(Partition& partition, const Step& step, Cycle now);
    Cycle memory_completion(Partition& partition, const Step& step, Cycle now);
    void look_ahead(Warp& warp, Cycle earliest);
    void wake_block(Resident& resident, Cycle earliest);
    void settle(Resident& resident, Step::Result result, Cycle now);
    void remove(Resident& resident);
    static void close_up(Partition& partition);
    int room(const Partition& partition, uint32_t warp_registers) const;

    const uint32_t index_;
    MemorySystem& memory_;
    Listener& listener_;
    std::array<Partition, kPartitions> partitions_;
    std::vector<std::unique_ptr<Resident>> residents_;
    uint32_t blocks_ = 0;
    uint32_t warps_ = 0;
    uint32_t shared_ = 0;
    uint32_t barriers_ = 0;
    Cycle shared_free_ = 0;  // of the shared-memory pipe
    Cycle next_ = kNever;
};

}  // namespace smt::runtime::device::simulated
