#include "rewriter/ptx/persistent/divergence.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>

#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

constexpr const char* kCarry = "CC.CF";

// Results depend on operands and nothing else.
bool is_pure(Opcode opcode) {
    if (opcode >= Opcode::kAdd && opcode <= Opcode::kShr) return true;
    if (opcode >= Opcode::kVadd && opcode <= Opcode::kVset4) return true;
    return opcode == Opcode::kMov || opcode == Opcode::kPrmt || opcode == Opcode::kCvt ||
           opcode == Opcode::kCvta || opcode == Opcode::kIsspacep;
}

bool is_same_for_all(Special special) {
    switch (special) {
        case Special::kNtid:
        case Special::kCtaid:
        case Special::kNctaid:
        case Special::kNwarpid:
        case Special::kSmid:
        case Special::kNsmid:
        case Special::kDynamicSmemSize:
            return true;
        default:
            return false;
    }
}

class Divergence {
public:
    Divergence(const Function& function, const Graph& graph)
        : graph_(graph), spread_(graph.blocks.size(), false), apart_(graph.blocks.size(), false) {
        if (function.kernel)  // what others are given may differ
            for (const Variable& parameter : function.parameters) parameters_.insert(parameter.name);
        const std::vector<size_t> joins = postdominators(graph);
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t block = 0; block < graph.blocks.size(); ++block) {
                for (const Instruction* instruction : graph.blocks[block].instructions)
                    changed |= spread(*instruction, apart_[block]);
                if (spread_[block] || !parts(block)) continue;
                spread_[block] = true;
                changed |= spread_from(block, joins[block]);
            }
        }
    }

    // Threads that come here together may go on to different blocks.
    bool parts(size_t block) const {
        const Block& code = graph_.blocks[block];
        if (code.next.size() < 2) return false;
        const Instruction& last = *code.instructions.back();
        return differs(last);
    }

    // Only some of the threads that come to it may do it.
    bool is_for_some(const Instruction& instruction) const {
        return instruction.guard && registers_.contains(instruction.guard->name);
    }

private:
    bool differs(const Operand& operand) const {
        bool any = false;
        each_operand(operand, [&](const Operand& part) {
            any |= part.kind == Operand::Kind::kRegister && registers_.contains(part.name);
            any |= part.kind == Operand::Kind::kSpecial && !is_same_for_all(part.special);
        });
        return any;
    }

    // The guard, or an operand besides a first one that is written.
    bool differs(const Instruction& instruction) const {
        if (is_for_some(instruction)) return true;
        const size_t first = writes(instruction) ? 1 : 0;
        return std::any_of(instruction.operands.begin() +
                               static_cast<std::ptrdiff_t>(std::min(first, instruction.operands.size())),
                           instruction.operands.end(),
                           [&](const Operand& operand) { return differs(operand); });
    }

    static bool writes(const Instruction& instruction) {
        if (instruction.operands.empty()) return false;
        if (instruction.opcode == Opcode::kBra || instruction.opcode == Opcode::kBrx) return false;
        const Operand::Kind kind = instruction.operands[0].kind;
        return kind == Operand::Kind::kRegister || kind == Operand::Kind::kVector ||
               kind == Operand::Kind::kPair || kind == Operand::Kind::kList;
    }

    bool is_parameter_load(const Instruction& instruction) const {
        if (!instruction.has(Modifier::kParam) && !instruction.has(Modifier::kParamEntry)) return false;
        bool own = true;
        each_operand(instruction.operands[1], [&](const Operand& part) {
            own &= part.kind != Operand::Kind::kSymbol || parameters_.contains(part.name);
        });
        return own;
    }

    // Loads of memory that nobody writes meanwhile, and a barrier's answer to all threads.
    bool is_same_for_all(const Instruction& instruction) const {
        if (is_pure(instruction.opcode)) return true;
        if (instruction.opcode == Opcode::kLd && instruction.operands.size() > 1)
            return instruction.has(Modifier::kConst) || instruction.has(Modifier::kNc) ||
                   is_parameter_load(instruction);
        return instruction.opcode == Opcode::kBar && instruction.has(Modifier::kRed) &&
               instruction.operands.size() == 3;
    }
    static bool is_same_for_all(Special special) { return persistent::is_same_for_all(special); }

    // Whether something became divergent.
    bool spread(const Instruction& instruction, bool apart) {
        const bool reads_carry = instruction.opcode == Opcode::kAddc || instruction.opcode == Opcode::kSubc ||
                                 instruction.opcode == Opcode::kMadc;
        const bool votes = instruction.opcode == Opcode::kBar;
        const bool different = apart || !is_same_for_all(instruction) || (!votes && differs(instruction)) ||
                               (reads_carry && registers_.contains(kCarry));
        if (!different || !writes(instruction)) return false;
        bool changed = instruction.has(Modifier::kCc) && registers_.insert(kCarry).second;
        each_operand(instruction.operands[0], [&](const Operand& part) {
            if (part.kind == Operand::Kind::kRegister) changed |= registers_.insert(part.name).second;
        });
        return changed;
    }

    // What lies between a branch that parts threads and where they meet again.
    bool spread_from(size_t block, size_t join) {
        bool changed = false;
        std::vector<size_t> open = graph_.blocks[block].next;
        std::vector<bool> seen(graph_.blocks.size(), false);
        while (!open.empty()) {
            const size_t at = open.back();
            open.pop_back();
            if (at == join || seen[at]) continue;
            seen[at] = true;
            changed |= !apart_[at];
            apart_[at] = true;
            open.insert(open.end(), graph_.blocks[at].next.begin(), graph_.blocks[at].next.end());
        }
        return changed;
    }

    const Graph& graph_;
    std::set<std::string> parameters_;
    std::unordered_set<std::string> registers_;  // that may differ
    std::vector<bool> spread_;                   // branches whose sides are known to be
    std::vector<bool> apart_;                    // blocks where only some threads may come by
};

// A barrier that waits for every thread of the block which has not left.
bool waits_for_all(const Instruction& instruction) {
    if (instruction.opcode != Opcode::kBar && instruction.opcode != Opcode::kBarrier) return false;
    if (instruction.guard || instruction.has(Modifier::kWarp) || instruction.has(Modifier::kCluster) ||
        instruction.has(Modifier::kArrive))
        return false;
    return instruction.operands.size() == (instruction.has(Modifier::kRed) ? 3 : 1);
}

using Blocks = std::vector<bool>;

// The blocks to which `from` leads, itself included, without passing `join`.
Blocks ways_from(const Graph& graph, size_t from, size_t join) {
    Blocks found(graph.blocks.size(), false);
    std::vector<size_t> open{from};
    while (!open.empty()) {
        const size_t at = open.back();
        open.pop_back();
        if (at == join || found[at]) continue;
        found[at] = true;
        open.insert(open.end(), graph.blocks[at].next.begin(), graph.blocks[at].next.end());
    }
    return found;
}

// The blocks from which a thread can leave without passing `operation` or a block in `barriers`.
Blocks ways_out(const Graph& graph, size_t operation, const Blocks& barriers) {
    Blocks found(graph.blocks.size(), false);
    std::vector<size_t> open{graph.exit()};
    while (!open.empty()) {
        const size_t at = open.back();
        open.pop_back();
        if (at == operation || barriers[at] || found[at]) continue;
        found[at] = true;
        open.insert(open.end(), graph.blocks[at].before.begin(), graph.blocks[at].before.end());
    }
    return found;
}

// A side of a branch that parts threads, and where it leads up to the place where they meet again.
struct Side {
    size_t branch;
    size_t first;
    Blocks reached;
};

std::vector<Side> sides_of(const Graph& graph, const Divergence& divergence) {
    const std::vector<size_t> joins = postdominators(graph);
    std::vector<Side> sides;
    for (size_t block = 0; block < graph.blocks.size(); ++block) {
        if (!divergence.parts(block)) continue;
        for (const size_t next : graph.blocks[block].next)
            sides.push_back({block, next, ways_from(graph, next, joins[block])});
    }
    return sides;
}

}  // namespace

bool leaves_early(const Function& function, const Test& wide) {
    const Graph graph = graph_of(*function.body, wide);
    auto is_alone = [](const Block& block) { return block.alone; };
    if (std::none_of(graph.blocks.begin(), graph.blocks.end(), is_alone)) return false;
    const Divergence divergence(function, graph);
    Blocks barriers(graph.blocks.size(), false);
    for (size_t block = 0; block < graph.blocks.size(); ++block) {
        if (!graph.blocks[block].alone) continue;
        const Instruction& operation = *graph.blocks[block].instructions.front();
        if (divergence.is_for_some(operation)) return true;
        barriers[block] = waits_for_all(operation);
    }
    const std::vector<Side> sides = sides_of(graph, divergence);
    for (size_t operation = 0; operation < graph.blocks.size() && !sides.empty(); ++operation) {
        if (!graph.blocks[operation].alone) continue;
        const Blocks leaving = ways_out(graph, operation, barriers);
        for (const Side& side : sides)
            for (const size_t other : graph.blocks[side.branch].next)
                if (other != side.first && side.reached[operation] && leaving[other]) return true;
    }
    return false;
}

}  // namespace smt::ptx::persistent
