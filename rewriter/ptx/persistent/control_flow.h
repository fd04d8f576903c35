// The basic blocks of a function's body. Block 0 is where it begins; the last block is empty and stands for
// having left.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx::persistent {

using Test = std::function<bool(const Instruction&)>;

struct Block {
    std::vector<const Instruction*> instructions;
    std::vector<size_t> next, before;  // without repetitions
    bool alone = false;                // its one instruction passed the test
};

struct Graph {
    std::vector<Block> blocks;
    size_t exit() const { return blocks.size() - 1; }
};

// Instructions that pass the test stand alone in their blocks. Views the scope.
Graph graph_of(const Scope& body, const Test& alone);

// The blocks to which `from` leads, itself included, without passing `join`.
std::vector<bool> ways_from(const Graph& graph, size_t from, size_t join);

// For each block the nearest one that every way out passes; exit() of itself, and where there is no way out.
std::vector<size_t> postdominators(const Graph& graph);

}  // namespace smt::ptx::persistent
