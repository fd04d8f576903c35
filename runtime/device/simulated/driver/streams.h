// Writes down what kernels execute: streams in SMT_SIM is a folder, and each kernel's first launch, by name
// and block shape, leaves a file there (machine/instruction_stream.h) with some of its blocks, spread over
// the grid. The engine's thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/device/simulated/machine/instruction_stream.h"

namespace smt::runtime::device::simulated {

inline constexpr uint64_t kRecordedBlocks = 4;

class Streams {
public:
    explicit Streams(std::string folder) : folder_(std::move(folder)) {}

    // Of a launch that begins. Null: one like it was recorded before, or nothing is wanted.
    std::unique_ptr<InstructionStream> begin(const Grid& grid);
    // The block, or one in its place that writes down what it does.
    std::unique_ptr<Block> watch(InstructionStream& stream, uint64_t index,
                                 std::unique_ptr<Block> block) const;
    void end(const InstructionStream& stream);

private:
    std::string folder_;  // empty: nothing is wanted
    std::map<std::string, int> seen_;
};

}  // namespace smt::runtime::device::simulated
