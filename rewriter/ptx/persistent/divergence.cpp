#include "rewriter/ptx/persistent/divergence.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

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

class Divergence {
public:
    Divergence(const Function& function, const Graph& graph, Team team)
        : graph_(graph),
          team_(team),
          spread_(graph.blocks.size(), false),
          apart_(graph.blocks.size(), false) {
        for (const Variable& parameter : function.parameters) {
            if (function.kernel)
                parameters_.insert(parameter.name);
            else if (parameter.space == Space::kRegister)  // what functions are given may differ
                registers_[parameter.name] = Uniformity::kDiffers;
        }
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

    const std::vector<bool>& apart() const { return apart_; }

    // Only some of the threads that come to it may do it.
    bool is_for_some(const Instruction& instruction) const {
        return instruction.guard && may_differ(of_register(instruction.guard->name));
    }

private:
    Uniformity of_register(const std::string& name) const {
        auto found = registers_.find(name);
        return found == registers_.end() ? Uniformity::kUnknown : found->second;
    }

    Uniformity of_operand(const Operand& operand) const {
        switch (operand.kind) {
            case Operand::Kind::kRegister:
                return of_register(operand.name);
            case Operand::Kind::kSpecial:
                return uniformity_of(operand, team_);
            case Operand::Kind::kInteger:
                return rewriter::uniformity_of_integer(operand.bits);
            default: {
                Uniformity all = Uniformity::kSame;
                for (const Operand& element : operand.elements)
                    all = rewriter::join(all, of_operand(element));
                return all;
            }
        }
    }

    // Of all operands but a first one that is written.
    std::vector<Uniformity> inputs(const Instruction& instruction) const {
        std::vector<Uniformity> found;
        for (size_t i = writes(instruction) ? 1 : 0; i < instruction.operands.size(); ++i)
            found.push_back(of_operand(instruction.operands[i]));
        return found;
    }

    bool differs(const Instruction& instruction) const {
        const std::vector<Uniformity> all = inputs(instruction);
        return is_for_some(instruction) || std::any_of(all.begin(), all.end(), may_differ);
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

    // Loads of memory that is not written meanwhile, and a barrier's answer to all threads.
    bool is_same_for_all(const Instruction& instruction) const {
        if (is_pure(instruction.opcode)) return true;
        if (instruction.opcode == Opcode::kLd && instruction.operands.size() > 1)
            return instruction.has(Modifier::kConst) || instruction.has(Modifier::kNc) ||
                   is_parameter_load(instruction);
        return instruction.opcode == Opcode::kBar && instruction.has(Modifier::kRed) &&
               instruction.operands.size() == 3;
    }

    Uniformity written_by(const Instruction& instruction, bool apart) const {
        if (apart || !is_same_for_all(instruction) || is_for_some(instruction)) return Uniformity::kDiffers;
        if (instruction.opcode == Opcode::kBar) return Uniformity::kSame;
        const bool reads_carry = instruction.opcode == Opcode::kAddc || instruction.opcode == Opcode::kSubc ||
                                 instruction.opcode == Opcode::kMadc;
        if (reads_carry && may_differ(of_register(kCarry))) return Uniformity::kDiffers;
        return result_of(instruction, inputs(instruction));
    }

    // Whether something became more different.
    bool spread(const Instruction& instruction, bool apart) {
        if (!writes(instruction)) return false;
        const Uniformity written = written_by(instruction, apart);
        bool changed = false;
        auto add = [&](const std::string& name, Uniformity uniformity) {
            Uniformity& known = registers_.try_emplace(name, Uniformity::kUnknown).first->second;
            const Uniformity both = rewriter::join(known, uniformity);
            changed |= both != known;
            known = both;
        };
        if (instruction.has(Modifier::kCc)) add(kCarry, may_differ(written) ? Uniformity::kDiffers : written);
        each_operand(instruction.operands[0], [&](const Operand& part) {
            if (part.kind == Operand::Kind::kRegister) add(part.name, written);
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
    const Team team_;
    std::set<std::string> parameters_;
    std::unordered_map<std::string, Uniformity> registers_;
    std::vector<bool> spread_;  // branches whose sides are known to be
    std::vector<bool> apart_;   // blocks where only some threads may come by
};

using Blocks = std::vector<bool>;

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

bool waits_for_all(const Instruction& instruction) {
    if (instruction.opcode != Opcode::kBar && instruction.opcode != Opcode::kBarrier) return false;
    if (instruction.guard || instruction.has(Modifier::kWarp) || instruction.has(Modifier::kCluster) ||
        instruction.has(Modifier::kArrive))
        return false;
    return instruction.operands.size() == (instruction.has(Modifier::kRed) ? 3 : 1);
}

std::vector<bool> apart(const Function& function, const Graph& graph, Team team) {
    return Divergence(function, graph, team).apart();
}

bool leaves_early(const Function& function, const Test& wide, Team team) {
    const Graph graph = graph_of(*function.body, wide);
    auto is_alone = [](const Block& block) { return block.alone; };
    if (std::none_of(graph.blocks.begin(), graph.blocks.end(), is_alone)) return false;
    const Divergence divergence(function, graph, team);
    Blocks barriers(graph.blocks.size(), false);
    for (size_t block = 0; block < graph.blocks.size(); ++block) {
        if (!graph.blocks[block].alone) continue;
        const Instruction& operation = *graph.blocks[block].instructions.front();
        if (divergence.is_for_some(operation)) return true;
        // One for some of the threads holds none of them for the others, which may be at another one.
        barriers[block] = waits_for_all(operation) && !divergence.apart()[block];
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
