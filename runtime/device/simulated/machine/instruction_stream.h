// What blocks executed, apart from what it computed: for each warp its instructions in order, as the machine
// sees them. A recorded kernel can be run again, by the machine or by a simpler model of a multiprocessor,
// without its program, beside any other one, and for as long as one likes.
//
//     stream.blocks.emplace_back();
//     return std::make_unique<RecordedBlock>(std::move(block), stream);     // writes to the last one; a
//     Block like the one it holds std::ofstream(path) << stream; ReplayedBlock block(stream, 0, true); // and
//     again
//
// A file is text: a line of names and figures, a line for each different instruction, a line for each warp,
// of instructions by number: "7" one, "7:4" with four transactions, "7!" at which it arrived at a barrier
// that the block waits for.
#pragma once

#include <cstdint>
#include <deque>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/simulated/machine/grid.h"

namespace smt::runtime::device::simulated {

struct InstructionStream {
    struct Instruction {
        Unit unit = Unit::kNone;
        Space space = Space::kNone;
        bool store = false;
        bool atomic = false;
        std::vector<uint16_t> reads, writes;
        StaticFacts facts() const { return {unit, reads, writes}; }
        bool to_memory() const { return unit == Unit::kMemory && space == Space::kGlobal; }
    };
    struct Executed {
        uint32_t instruction = 0;  // of `instructions`
        uint16_t transactions = 0;
        bool arrives = false;
    };
    using Warp = std::vector<Executed>;
    struct Block {
        std::vector<Warp> warps;
    };

    std::string kernel;
    BlockNeeds needs;
    uint64_t grid_blocks = 0;  // of the launch that it is from
    std::deque<Instruction> instructions;
    std::vector<Block> blocks;

    uint64_t executed() const;  // warp-instructions of all the blocks
};

std::ostream& operator<<(std::ostream& out, const InstructionStream& stream);
// False: it is not one.
bool read(std::istream& in, InstructionStream& stream);

// Of a block no more than so many warp-instructions are kept: what comes later is much like it.
inline constexpr uint64_t kMostRecorded = 1u << 17;

// Does what another block does and writes it down as a further block of a stream, which outlives it. One at a
// time for a stream.
class RecordedBlock final : public Block {
public:
    RecordedBlock(std::unique_ptr<Block> block, InstructionStream& stream);

    int warps() const override { return block_->warps(); }
    uint32_t runnable() const override { return block_->runnable(); }
    const StaticFacts* next(int warp) const override { return block_->next(warp); }
    Step step(int warp) override;
    bool finished() const override { return block_->finished(); }
    bool deadlocked() const override { return block_->deadlocked(); }
    const Fault* fault() const override { return block_->fault(); }
    int line(int warp) const override { return block_->line(warp); }

private:
    std::unique_ptr<Block> block_;
    InstructionStream& stream_;
    size_t place_;  // among the stream's blocks
    uint64_t kept_ = 0;
    std::map<std::pair<const StaticFacts*, Space>, uint32_t> known_;
};

// Executes what was recorded. A warp that arrives at its n-th barrier waits for all warps that ever get to
// theirs.
class ReplayedBlock final : public Block {
public:
    // `endless`: behind the last instruction of all warps comes the stream's next block.
    ReplayedBlock(const InstructionStream& stream, size_t first, bool endless);

    int warps() const override { return static_cast<int>(warps_.size()); }
    uint32_t runnable() const override;
    const StaticFacts* next(int warp) const override;
    Step step(int warp) override;
    bool finished() const override { return !endless_ && ended(); }
    bool deadlocked() const override { return false; }
    const Fault* fault() const override { return nullptr; }
    int line(int) const override { return 0; }

private:
    struct Warp {
        size_t at = 0;
        uint32_t barriers = 0;  // arrived at
    };
    const InstructionStream::Block& block() const { return stream_.blocks[place_]; }
    bool ended() const;
    bool waits(const Warp& warp) const { return warp.barriers > passed_; }
    void begin();
    void pass();

    const InstructionStream& stream_;
    std::vector<StaticFacts> facts_;
    size_t place_;
    const bool endless_;
    std::vector<Warp> warps_;
    std::vector<uint32_t> barriers_;  // of each warp in all
    uint32_t passed_ = 0;
};

}  // namespace smt::runtime::device::simulated
