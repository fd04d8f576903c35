// The loops of a function, by its basic blocks.
//
// A loop is what lies between a branch back and the block that it leads to, which every way into the loop
// passes. A cycle that can be entered in two places is none.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/ptx/persistent/control_flow.h"

namespace smt::ptx::persistent {

struct Loop {
    size_t head = 0;
    std::vector<size_t> ends;  // blocks that branch back to it
    std::vector<bool> blocks;  // inner loops included
    // Of one round, about: inner loops as often as is known, else kGuessedRounds; what waits counts as more.
    uint64_t instructions = 0;
    uint64_t rounds = 0;  // if a counter with constant bounds says so; 0: not known

    bool has(size_t block) const { return blocks[block]; }
    bool around(const Loop& other) const { return head != other.head && blocks[other.head]; }
};

inline constexpr uint64_t kGuessedRounds = 16;

std::vector<Loop> loops_of(const Graph& graph);

}  // namespace smt::ptx::persistent
