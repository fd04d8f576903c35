#include "tests/profiler/streams/replayed.h"

#include "runtime/device/simulated/machine/machine.h"

namespace smt::tests {

using namespace runtime::device::simulated;

namespace {

// Counts what it issues.
class Counted final : public Block {
public:
    Counted(std::unique_ptr<Block> block, const uint64_t& from, const Clock& clock, uint64_t& issued)
        : block_(std::move(block)), from_(from), clock_(clock), issued_(issued) {}
    int warps() const override { return block_->warps(); }
    uint32_t runnable() const override { return block_->runnable(); }
    const StaticFacts* next(int warp) const override { return block_->next(warp); }
    Step step(int warp) override {
        issued_ += clock_.now() >= from_;
        return block_->step(warp);
    }
    bool finished() const override { return block_->finished(); }
    bool deadlocked() const override { return block_->deadlocked(); }
    const Fault* fault() const override { return block_->fault(); }
    int line(int warp) const override { return block_->line(warp); }

private:
    std::unique_ptr<Block> block_;
    const uint64_t& from_;
    const Clock& clock_;
    uint64_t& issued_;
};

// One block.
class EndlessGrid final : public Grid {
public:
    EndlessGrid(const InstructionStream& stream, int number, const uint64_t& from, uint64_t& issued)
        : stream_(stream), number_(static_cast<size_t>(number)), from_(from), issued_(issued) {
        name = stream_.kernel;
        needs = stream_.needs;
    }
    std::unique_ptr<Block> begin(Dim3, const Place& place) override {
        return std::make_unique<Counted>(std::make_unique<ReplayedBlock>(stream_, number_, true), from_,
                                         *place.clock, issued_);
    }
    void ended(const GridResult&) override {}

private:
    const InstructionStream& stream_;
    const size_t number_;
    const uint64_t& from_;
    uint64_t& issued_;
};

}  // namespace

std::array<double, 2> replay(const Resident& one, const Resident& other, uint64_t first, uint64_t all) {
    Machine machine({.multiprocessors = 1});
    const uint64_t from = kLaunchLatency + first, until = kLaunchLatency + all;
    std::array<uint64_t, 2> issued{};
    for (int a = 0, b = 0; a < one.blocks || b < other.blocks;) {
        const bool turn = b == other.blocks || (a < one.blocks && a * other.blocks <= b * one.blocks);
        const Resident& each = turn ? one : other;
        machine.launch(std::make_shared<EndlessGrid>(*each.stream, turn ? a : b, from, issued[turn ? 0 : 1]));
        ++(turn ? a : b);
    }
    while (machine.next() < until && machine.advance()) {
    }
    const auto cycles = static_cast<double>(all - first);
    return {static_cast<double>(issued[0]) / cycles, static_cast<double>(issued[1]) / cycles};
}

}  // namespace smt::tests
