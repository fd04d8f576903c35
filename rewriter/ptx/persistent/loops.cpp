#include "rewriter/ptx/persistent/loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

// The blocks from which `end` is reached without passing `head`. Empty: one of them is where the function
// begins.
std::vector<bool> blocks_between(const Graph& graph, size_t head, size_t end) {
    std::vector<bool> found(graph.blocks.size(), false);
    found[head] = true;
    std::vector<size_t> open{end};
    while (!open.empty()) {
        const size_t at = open.back();
        open.pop_back();
        if (found[at]) continue;
        if (at == 0) return {};
        found[at] = true;
        open.insert(open.end(), graph.blocks[at].before.begin(), graph.blocks[at].before.end());
    }
    return found;
}

// What is written to registers with an integer in it: %r = 4, %r = %r + 4.
class Counters {
public:
    explicit Counters(const Graph& graph) {
        for (const Block& block : graph.blocks)
            for (const Instruction* instruction : block.instructions) note(*instruction);
    }

    // How often a block that ends with `@%p bra` runs in a row.
    uint64_t rounds_of(const Block& end) const {
        const Instruction& branch = *end.instructions.back();
        if (!branch.guard || branch.guard->negated) return 0;
        for (const Instruction* test : end.instructions) {
            if (test->opcode != Opcode::kSetp || test->operands.size() != 3 ||
                test->operands[0].name != branch.guard->name)
                continue;
            const auto found = registers_.find(test->operands[1].name);
            if (found == registers_.end() || test->operands[2].kind != Operand::Kind::kInteger) return 0;
            const Counter& counter = found->second;
            if (counter.writes != 2 || !counter.first || !counter.step || *counter.step == 0) return 0;
            const int64_t way = static_cast<int64_t>(test->operands[2].bits) - *counter.first;
            return way / *counter.step > 0 ? static_cast<uint64_t>(way / *counter.step) : 0;
        }
        return 0;
    }

private:
    struct Counter {
        size_t writes = 0;
        std::optional<int64_t> first, step;
    };

    void note(const Instruction& instruction) {
        if (instruction.operands.empty() || instruction.operands[0].kind != Operand::Kind::kRegister) return;
        const std::vector<Operand>& operands = instruction.operands;
        Counter& counter = registers_[operands[0].name];
        ++counter.writes;
        const Operand& last = operands.back();
        if (instruction.guard || last.kind != Operand::Kind::kInteger) return;
        const auto value = static_cast<int64_t>(last.bits);
        if (instruction.opcode == Opcode::kMov) counter.first = value;
        if (instruction.opcode == Opcode::kAdd && operands.size() == 3 &&
            operands[1].name == operands[0].name)
            counter.step = value;
    }

    std::map<std::string, Counter> registers_;
};

// A load that may go to memory, and a sleep, in instructions that take as long.
constexpr uint64_t kLoadCost = 16, kSleepCost = 4096;

uint64_t instructions_of(const Instruction& instruction) {
    using enum Modifier;
    if (instruction.opcode == Opcode::kNanosleep) return kSleepCost;
    const bool near =
        instruction.first({kParam, kParamEntry, kParamFunc, kShared, kSharedCta, kConst}).has_value();
    return instruction.opcode == Opcode::kLd && !near ? kLoadCost : 1;
}

// Inner loops first, as they have fewer blocks.
void count_instructions(const Graph& graph, std::vector<Loop>& loops) {
    std::ranges::sort(loops, {}, [](const Loop& loop) { return std::ranges::count(loop.blocks, true); });
    for (size_t i = 0; i < loops.size(); ++i) {
        std::vector<bool> left = loops[i].blocks;
        for (size_t j = i; j-- > 0;) {  // the next larger one inside, then what that has not covered
            const Loop& inner = loops[j];
            if (!loops[i].around(inner) || !left[inner.head]) continue;
            loops[i].instructions += inner.instructions * (inner.rounds ? inner.rounds : kGuessedRounds);
            for (size_t block = 0; block < left.size(); ++block)
                if (inner.has(block)) left[block] = false;
        }
        for (size_t block = 0; block < left.size(); ++block)
            for (const Instruction* instruction : graph.blocks[block].instructions)
                loops[i].instructions += left[block] ? instructions_of(*instruction) : 0;
    }
}

}  // namespace

std::vector<Loop> loops_of(const Graph& graph) {
    const Counters counters(graph);
    std::map<size_t, Loop> by_head;
    for (size_t end = 0; end < graph.blocks.size(); ++end) {
        for (const size_t head : graph.blocks[end].next) {
            if (head > end) continue;
            const std::vector<bool> blocks = blocks_between(graph, head, end);
            if (blocks.empty()) continue;
            Loop& loop = by_head[head];
            loop.head = head;
            loop.blocks.resize(blocks.size(), false);
            for (size_t block = 0; block < blocks.size(); ++block)
                if (blocks[block]) loop.blocks[block] = true;
            loop.rounds = loop.ends.empty() ? counters.rounds_of(graph.blocks[end]) : 0;
            loop.ends.push_back(end);
        }
    }
    std::vector<Loop> loops;
    for (auto& [head, loop] : by_head) loops.push_back(std::move(loop));
    count_instructions(graph, loops);
    return loops;
}

}  // namespace smt::ptx::persistent
