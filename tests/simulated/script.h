// Blocks that do what a test says: every warp runs the same list of instructions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/simulated/machine/machine.h"

namespace smt::tests {

using namespace smt::runtime::device::simulated;

struct Instruction {
    Unit unit = Unit::kFloat;
    std::vector<uint16_t> reads = {};
    std::vector<uint16_t> writes = {};
    Space space = Space::kNone;
    uint16_t transactions = 0;
    Step::Result result = Step::Result::kRan;
    bool atomic = false;
};

// `count` times the same instructions.
inline std::vector<Instruction> repeat(int count, const std::vector<Instruction>& what) {
    std::vector<Instruction> all;
    for (int i = 0; i < count; ++i) all.insert(all.end(), what.begin(), what.end());
    return all;
}

struct Script {
    std::vector<Instruction> instructions;
    std::vector<StaticFacts> facts;
    explicit Script(std::vector<Instruction> list) : instructions(std::move(list)) {
        for (const Instruction& each : instructions) facts.push_back({each.unit, each.reads, each.writes});
    }
};

class ScriptBlock final : public Block {
public:
    ScriptBlock(const Script& script, int warps) : script_(script), at_(static_cast<size_t>(warps), 0) {}
    int warps() const override { return static_cast<int>(at_.size()); }
    uint32_t runnable() const override {
        uint32_t mask = 0;
        for (int i = 0; i < warps(); ++i) mask |= next(i) ? 1u << i : 0;
        return mask;
    }
    const StaticFacts* next(int warp) const override {
        const size_t at = at_[static_cast<size_t>(warp)];
        const bool waits = waiting_ >> warp & 1;
        return fault_ || waits || at == script_.facts.size() ? nullptr : &script_.facts[at];
    }
    Step step(int warp) override {
        size_t& at = at_[static_cast<size_t>(warp)];
        const Instruction& now = script_.instructions[at++];
        Step step;
        step.unit = now.unit;
        step.space = now.space;
        step.transactions = now.transactions;
        step.atomic = now.atomic;
        step.lanes = 32;
        step.result = now.result;
        if (now.result == Step::Result::kFault) {
            fault_ = Fault{};
            fault_->message = "the script says so";
        } else if (now.result == Step::Result::kBarrier) {
            waiting_ |= 1u << warp;
            if (__builtin_popcount(waiting_) == warps()) waiting_ = 0;
        } else if (at == script_.instructions.size()) {
            step.result = Step::Result::kExited;
        }
        return step;
    }
    bool finished() const override {
        for (size_t at : at_) {
            if (at != script_.instructions.size()) return false;
        }
        return waiting_ == 0;
    }
    bool deadlocked() const override { return !finished() && !fault_ && runnable() == 0; }
    const Fault* fault() const override { return fault_ ? &*fault_ : nullptr; }
    int line(int) const override { return 1; }

private:
    const Script& script_;
    std::vector<size_t> at_;
    uint32_t waiting_ = 0;
    std::optional<Fault> fault_;
};

class ScriptGrid final : public Grid {
public:
    ScriptGrid(std::string what, uint32_t blocks, const BlockNeeds& each,
               std::vector<Instruction> instructions)
        : script_(std::move(instructions)) {
        name = std::move(what);
        size = {blocks, 1, 1};
        needs = each;
    }
    std::unique_ptr<Block> begin(Dim3 index, const Place& place) override {
        begun.emplace_back(index.x, place.multiprocessor);
        return std::make_unique<ScriptBlock>(script_, static_cast<int>(needs.warps()));
    }
    void ended(const GridResult& of) override {
        result = of;
        over = true;
    }

    std::vector<std::pair<uint32_t, uint32_t>> begun;  // block, multiprocessor
    GridResult result;
    bool over = false;

private:
    const Script script_;
};

inline std::shared_ptr<ScriptGrid> script(std::string name, uint32_t blocks, const BlockNeeds& needs,
                                          std::vector<Instruction> instructions) {
    return std::make_shared<ScriptGrid>(std::move(name), blocks, needs, std::move(instructions));
}

inline void run(Machine& machine) {
    while (machine.advance()) {
    }
}

}  // namespace smt::tests
