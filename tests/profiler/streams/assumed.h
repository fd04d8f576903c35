// A multiprocessor as Kernelet's model assumes it (4.4), cycle by cycle, for streams that were recorded: each
// warp scheduler takes its ready warps in turns, an instruction a cycle; a warp that accesses memory is idle
// until that is answered, and all else takes no time. An access takes
//
//     L = L_0 + (N + q - 1) / B       q requests of its own, N under way on the multiprocessor, its own among
//     them
//
// So what differs from the chain of markov.h is what the chain makes of it: random instructions, waits
// without memory, blocks as units.
#pragma once

#include <array>
#include <queue>
#include <vector>

#include "profiler/models/markov.h"
#include "runtime/device/simulated/machine/instruction_stream.h"

namespace smt::tests {

class AssumedMultiprocessor {
public:
    AssumedMultiprocessor(const profiler::models::Memory& memory, int schedulers)
        : memory_(memory), schedulers_(static_cast<size_t>(schedulers)) {}

    // So many blocks, which follow each other for ever. `which`: 0 or 1, whose instructions these are.
    void add(const runtime::device::simulated::InstructionStream& stream, int blocks, size_t which);
    // Instructions a cycle of each kernel, from the end of the first cycles to the end of all.
    std::array<double, 2> run(long first, long all);

private:
    struct Warp {
        const runtime::device::simulated::InstructionStream* stream;
        size_t block, warp, which;
        size_t at = 0;
        double ready = 0;
    };
    struct Scheduler {
        std::vector<Warp> warps;
        size_t turn = 0;
    };
    struct Access {
        double over;
        double requests;
        bool operator<(const Access& other) const { return over > other.over; }
    };
    void issue(Warp& warp, long now);

    const profiler::models::Memory memory_;
    std::vector<Scheduler> schedulers_;
    std::priority_queue<Access> under_way_;
    double requests_ = 0;
    size_t warps_ = 0;
};

}  // namespace smt::tests
