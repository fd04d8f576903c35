// What the machine runs: a grid of blocks. The interpreter's launches are grids, and tests make their
// own of scripted blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/simulated/exec/cta.h"
#include "runtime/device/simulated/machine/occupancy.h"

namespace smt::runtime::device::simulated {

// One block in execution: exec's Cta, as far as the machine uses it.
class Block {
public:
    virtual ~Block() = default;
    virtual int warps() const = 0;
    virtual uint32_t runnable() const = 0;
    virtual const StaticFacts* next(int warp) const = 0;
    virtual Step step(int warp) = 0;
    virtual bool finished() const = 0;
    virtual bool deadlocked() const = 0;
    virtual const Fault* fault() const = 0;
    virtual int line(int warp) const = 0;  // of the PTX text, for messages
};

class Clock {
public:
    virtual ~Clock() = default;
    virtual Cycle now() const = 0;
};

// Where a block runs.
struct Place {
    const Clock* clock = nullptr;
    uint32_t multiprocessor = 0;
    uint32_t multiprocessors = 0;
};

struct GridResult {
    enum class End : uint8_t { kDone, kFault, kStepLimit, kDeadlock, kCancelled };
    End end = End::kDone;
    Cycle started = 0;  // its first block was placed
    Cycle ended = 0;
    uint64_t instructions = 0;  // of warps
    uint64_t thread_instructions = 0;
    std::vector<uint32_t> blocks;         // run on each multiprocessor
    std::vector<uint32_t> most_resident;  // at one time on each
    std::optional<Fault> fault;           // kFault
    Dim3 where;                           // kStepLimit, kDeadlock: a block it was seen in,
    int line = 0;                         // and the PTX line that one of its warps would execute next
};

class Grid {
public:
    virtual ~Grid() = default;
    virtual std::unique_ptr<Block> begin(Dim3 index, const Place& place) = 0;
    virtual void ended(const GridResult& result) = 0;  // may submit more work

    std::string name;
    Dim3 size;
    BlockNeeds needs;
    int priority = 0;  // lower is more urgent, as in the driver
    std::shared_ptr<const std::vector<bool>>
        places;  // by multiprocessor, whether blocks may go there; null: on all

    bool may_use(size_t multiprocessor) const { return !places || (*places)[multiprocessor]; }
};

}  // namespace smt::runtime::device::simulated
