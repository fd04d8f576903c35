#include "rewriter/ptx/persistent/control_flow.h"

#include <algorithm>
#include <map>
#include <string>

#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

// The body as a list, and where names of labels lead. Scopes may repeat names: what a scope does not have is
// looked for in the one around.
class Flat {
public:
    explicit Flat(const Scope& body) { add(body, kNone); }

    static constexpr size_t kNone = static_cast<size_t>(-1);
    struct Item {
        const Instruction* instruction;
        size_t scope;
    };
    std::vector<Item> items;

    // Behind the last item for a label at the end; kNone: there is no such label.
    size_t find(std::string_view label, size_t scope) const {
        for (; scope != kNone; scope = scopes_[scope].around) {
            auto found = scopes_[scope].labels.find(label);
            if (found != scopes_[scope].labels.end()) return found->second;
        }
        return kNone;
    }

    // Where an instruction may go besides the next one.
    std::vector<size_t> targets(const Item& item) const {
        std::vector<size_t> places;
        auto add = [&](std::string_view label) {
            if (size_t place = find(label, item.scope); place != kNone) places.push_back(place);
        };
        for (const Operand& operand : item.instruction->operands) {
            if (operand.kind != Operand::Kind::kLabel) continue;
            if (item.instruction->opcode == Opcode::kBra) add(operand.name);
            if (item.instruction->opcode != Opcode::kBrx) continue;
            if (const Targets* table = find_table(operand.name, item.scope))
                for (const std::string& label : table->targets) add(label);
        }
        return places;
    }

private:
    struct Level {
        size_t around;
        std::map<std::string, size_t, std::less<>> labels;
        std::map<std::string, const Targets*, std::less<>> tables;
    };

    void add(const Scope& scope, size_t around) {
        const size_t own = scopes_.size();
        scopes_.push_back({around, {}, {}});
        for (const Statement& statement : scope.statements) {
            if (auto* instruction = std::get_if<Instruction>(&statement)) items.push_back({instruction, own});
            if (auto* label = std::get_if<Label>(&statement)) scopes_[own].labels[label->name] = items.size();
            if (auto* table = std::get_if<Targets>(&statement)) scopes_[own].tables[table->name] = table;
            if (auto* inner = std::get_if<Scope>(&statement)) add(*inner, own);
        }
    }

    const Targets* find_table(std::string_view name, size_t scope) const {
        for (; scope != kNone; scope = scopes_[scope].around) {
            auto found = scopes_[scope].tables.find(name);
            if (found != scopes_[scope].tables.end()) return found->second;
        }
        return nullptr;
    }

    std::vector<Level> scopes_;
};

bool ends_block(const Instruction& instruction) {
    return instruction.opcode == Opcode::kBra || instruction.opcode == Opcode::kBrx || leaves(instruction) ||
           instruction.opcode == Opcode::kTrap;
}

// Which items begin a block.
std::vector<bool> leaders(const Flat& flat, const Test& alone) {
    std::vector<bool> leads(flat.items.size() + 1, false);
    leads[0] = true;
    for (size_t i = 0; i < flat.items.size(); ++i) {
        const bool single = alone(*flat.items[i].instruction);
        if (single) leads[i] = true;
        if (single || ends_block(*flat.items[i].instruction)) leads[i + 1] = true;
        for (const size_t target : flat.targets(flat.items[i])) leads[target] = true;
    }
    return leads;
}

void connect(Graph& graph, size_t from, size_t to) {
    std::vector<size_t>& next = graph.blocks[from].next;
    if (std::find(next.begin(), next.end(), to) != next.end()) return;
    next.push_back(to);
    graph.blocks[to].before.push_back(from);
}

}  // namespace

Graph graph_of(const Scope& body, const Test& alone) {
    const Flat flat(body);
    const std::vector<bool> leads = leaders(flat, alone);
    Graph graph;
    std::vector<size_t> block_of(flat.items.size() + 1);
    for (size_t i = 0; i < flat.items.size(); ++i) {
        if (leads[i]) graph.blocks.emplace_back();
        block_of[i] = graph.blocks.size() - 1;
        graph.blocks.back().instructions.push_back(flat.items[i].instruction);
    }
    graph.blocks.emplace_back();
    block_of.back() = graph.exit();
    for (size_t i = 0; i < flat.items.size(); ++i) {
        if (!leads[i + 1] && i + 1 != flat.items.size()) continue;  // not the last of its block
        const Instruction& last = *flat.items[i].instruction;
        graph.blocks[block_of[i]].alone = alone(last);
        for (const size_t target : flat.targets(flat.items[i])) connect(graph, block_of[i], block_of[target]);
        if (leaves(last)) connect(graph, block_of[i], graph.exit());
        if (!ends_block(last) || last.guard) connect(graph, block_of[i], block_of[i + 1]);
    }
    return graph;
}

std::vector<bool> ways_from(const Graph& graph, size_t from, size_t join) {
    std::vector<bool> found(graph.blocks.size(), false);
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

// Cooper, Harvey and Kennedy's algorithm on the reversed graph.
std::vector<size_t> postdominators(const Graph& graph) {
    constexpr size_t kNone = static_cast<size_t>(-1);
    const size_t exit = graph.exit();
    std::vector<size_t> order, number(graph.blocks.size(), kNone);  // in postorder of the reversed graph
    std::vector<bool> seen(graph.blocks.size(), false);
    std::vector<std::pair<size_t, size_t>> open{{exit, 0}};
    seen[exit] = true;
    while (!open.empty()) {
        auto& [block, at] = open.back();
        if (at < graph.blocks[block].before.size()) {
            const size_t before = graph.blocks[block].before[at++];
            if (!seen[before]) {
                seen[before] = true;
                open.emplace_back(before, 0);
            }
        } else {
            number[block] = order.size();
            order.push_back(block);
            open.pop_back();
        }
    }
    std::vector<size_t> nearest(graph.blocks.size(), kNone);
    nearest[exit] = exit;
    auto meet = [&](size_t a, size_t b) {
        while (a != b) {
            if (number[a] < number[b])
                a = nearest[a];
            else
                b = nearest[b];
        }
        return a;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (auto block = order.rbegin(); block != order.rend(); ++block) {
            if (*block == exit) continue;
            size_t found = kNone;
            for (const size_t next : graph.blocks[*block].next) {
                if (nearest[next] == kNone) continue;
                found = found == kNone ? next : meet(found, next);
            }
            if (found == nearest[*block]) continue;
            nearest[*block] = found;
            changed = true;
        }
    }
    std::replace(nearest.begin(), nearest.end(), kNone, exit);
    return nearest;
}

}  // namespace smt::ptx::persistent
