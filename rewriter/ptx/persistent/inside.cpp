#include "rewriter/ptx/persistent/inside.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "rewriter/device/smt_worker.h"
#include "rewriter/ptx/fence/fence.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/persistent/divergence.h"
#include "rewriter/ptx/persistent/loops.h"
#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

constexpr const char* kAbandon = "$smt_abandon";
constexpr size_t kDeclared = 5;
constexpr const char* kDeclarations =
    ".reg .pred %smt_seen;\n.reg .pred %smt_all;\n.reg .b32 %smt_word;\n.reg .b32 %smt_steps;\n"
    ".reg .b64 %smt_control;\n";
constexpr const char* kBegin = "mov.b32 %smt_word, 0;\nmov.b32 %smt_steps, 0;\n";
// The high half of Control::word, which the host writes.
constexpr const char* kLook =
    "ld.param.u64 %smt_control, [smt_launch];\nld.relaxed.gpu.u32 %smt_word, [%smt_control+4];\n";

std::string set_seen() { return fmt::format("setp.ge.u32 %smt_seen, %smt_word, {};\n", smt::kStopInside); }

using Statements = std::vector<Statement>;

// Code of ours, behind the declarations. `labels`: outside of it, to which it leads.
Statements declared(const std::string& text, const std::set<std::string>& labels = {}) {
    std::string whole = fmt::format(
        ".version 7.0\n.target sm_70\n.address_size 64\n.entry k(.param .align 8 .b8 "
        "smt_launch[{}])\n{{\n{}{}",
        sizeof(smt::Launch), kDeclarations, text);
    for (const std::string& label : labels) whole += label + ":\n";
    auto module = parse(whole + "}\n");
    Statements all =
        std::move(std::get<Function>(std::get<Module>(module).declarations.front()).body->statements);
    all.resize(all.size() - labels.size());
    return all;
}

Statements parsed(const std::string& text, const std::set<std::string>& labels) {
    Statements all = declared(text, labels);
    all.erase(all.begin(), all.begin() + kDeclared);
    return all;
}

bool is_wide(const Instruction& instruction) { return width_of(instruction) != Width::kThread; }

class Checks {
public:
    explicit Checks(Function& function)
        : function_(function),
          graph_(graph_of(*function.body, is_wide)),
          joins_(postdominators(graph_)),
          apart_(apart(function, graph_, Team::kBlock)),
          apart_in_warp_(apart(function, graph_, Team::kWarp)),
          loops_(loops_of(graph_)) {
        for (const Statement& statement : function.body->statements)
            if (const auto* instruction = std::get_if<Instruction>(&statement)) outer_.insert(instruction);
    }

    // Empty, or why there are none.
    std::string add() {
        if (loops_.empty()) return "it has no loop";
        note_partial();
        for (const Loop& loop : loops_) {
            if (any(loop, [this](size_t block) { return is_barrier(block); }))
                check_barrier(loop);
            else if (is_outermost(loop))
                check_rounds(loop);
        }
        if (looks_.empty() && rounds_.empty())
            return "no loop of it has a place where its threads could leave";
        insert();
        return "";
    }

private:
    struct Round {
        std::string target;
        uint64_t instructions;
    };

    const Instruction& operation(size_t block) const { return *graph_.blocks[block].instructions.front(); }
    bool is_barrier(size_t block) const {
        return graph_.blocks[block].alone && width_of(operation(block)) == Width::kBlock;
    }
    // A barrier that can tell threads of the stop, too.
    bool can_tell(size_t block) const {
        if (!is_barrier(block) || !waits_for_all(operation(block))) return false;
        const Instruction& barrier = operation(block);
        return barrier.opcode == Opcode::kBar && !barrier.has(Modifier::kRed) &&
               barrier.operands[0].kind == Operand::Kind::kInteger && outer_.contains(&barrier);
    }

    template <typename Test>
    bool any(const Loop& loop, const Test& test) const {
        for (size_t block = 0; block < graph_.blocks.size(); ++block)
            if (loop.has(block) && test(block)) return true;
        return false;
    }
    bool has_wide(const Loop& loop) const {
        return any(loop, [this](size_t block) { return graph_.blocks[block].alone; });
    }
    bool is_outermost(const Loop& loop) const {
        return !has_wide(loop) && std::ranges::none_of(loops_, [&](const Loop& other) {
            return other.around(loop) && !has_wide(other);
        });
    }

    // Ahead of a barrier to which not all threads come together others may be at any place: no barrier that
    // follows it is one for all. And it may wait for a thread that never comes to it, until that one exits.
    void note_partial() {
        partial_.resize(graph_.blocks.size(), false);
        for (size_t block = 0; block < graph_.blocks.size(); ++block) {
            if (!graph_.blocks[block].alone) continue;
            if (!is_barrier(block)) {
                some_wait_ |= apart_in_warp_[block];
                continue;
            }
            if (!apart_[block] && waits_for_all(operation(block))) continue;
            some_wait_ = true;
            const std::vector<bool> ways = ways_from(graph_, block, graph_.exit());
            for (size_t each = 0; each < ways.size(); ++each)
                if (ways[each]) partial_[each] = true;
        }
    }

    // The last barrier of a round, unless one of an inner loop does.
    void check_barrier(const Loop& loop) {
        for (size_t block = graph_.blocks.size(); block-- > 0;) {
            if (!loop.has(block) || !can_tell(block) || apart_[block] || partial_[block]) continue;
            const bool inner = std::ranges::any_of(
                loops_, [&](const Loop& other) { return loop.around(other) && other.has(block); });
            if (!inner) looks_.insert(block);
            return;
        }
    }

    void check_rounds(const Loop& loop) {
        if (loop.rounds != 0 && loop.rounds * loop.instructions <= kShortLoop) return;
        for (const size_t end : loop.ends) {
            const Instruction* const branch = graph_.blocks[end].instructions.back();
            const std::string target = outer_.contains(branch) ? target_of(loop, end) : "";
            if (!target.empty()) rounds_[branch] = {target, loop.instructions};
        }
    }

    bool leads_to_wide(size_t from, size_t join) const {
        const std::vector<bool> ways = ways_from(graph_, from, join);
        for (size_t block = 0; block < ways.size(); ++block)
            if (ways[block] && graph_.blocks[block].alone) return true;
        return false;
    }

    // Where a thread goes that sees the stop at the end of a round. Empty: it must go on.
    std::string target_of(const Loop& loop, size_t end) {
        if (!leads_to_wide(end, graph_.exit())) return some_wait_ ? "" : kAbandon;
        size_t join = joins_[end];
        while (join != graph_.exit() && (loop.has(join) || apart_[join])) join = joins_[join];
        if (join == graph_.exit() || partial_[join] || !outer_.contains(&operation(join)) ||
            leads_to_wide(end, join))
            return "";
        meetings_.insert(join);
        return label_of(join);
    }
    static std::string label_of(size_t block) { return fmt::format("$smt_meeting{}", block); }

    // ---- the code

    // In front of a branch.
    static Statements round(const Round& round, size_t number) {
        const std::string leaves = fmt::format("{}{}@%smt_seen bra {};\n", kLook, set_seen(), round.target);
        if (round.instructions >= kCheckEvery) return parsed(leaves, {round.target});
        const std::string on = fmt::format("$smt_on{}", number);
        return parsed(fmt::format("add.s32 %smt_steps, %smt_steps, {};\n"
                                  "setp.lt.u32 %smt_seen, %smt_steps, {};\n@%smt_seen bra {};\n"
                                  "mov.b32 %smt_steps, 0;\n{}{}:\n",
                                  round.instructions, kCheckEvery, on, leaves, on),
                      {round.target});
    }

    // What all threads come to together. `looks`: for the stop, each for itself; the others have seen it in
    // a loop, or have not.
    Statements meeting(size_t block) const {
        const uint64_t number = can_tell(block) ? operation(block).operands[0].bits : 0;
        return parsed(fmt::format("{}{}{}bar.red.or.pred %smt_all, {}, %smt_seen;\n@%smt_all bra {};\n",
                                  looks_.contains(block) ? kLook : "",
                                  meetings_.contains(block) ? label_of(block) + ":\n" : "", set_seen(),
                                  number, kAbandon),
                      {kAbandon});
    }

    void insert() {
        std::map<const Instruction*, Statements> before;
        std::set<const Instruction*> replaced;
        std::set<size_t> all = looks_;
        all.insert(meetings_.begin(), meetings_.end());
        for (const size_t block : all) {
            before[&operation(block)] = meeting(block);
            if (can_tell(block)) replaced.insert(&operation(block));
        }
        size_t number = 0;
        for (const auto& [branch, each] : rounds_) {
            Statements code = round(each, number++);
            std::move(code.begin(), code.end(), std::back_inserter(before[branch]));
        }
        Statements made = declared(kBegin);
        for (Statement& statement : function_.body->statements) {
            const auto* const instruction = std::get_if<Instruction>(&statement);
            if (const auto found = before.find(instruction); instruction && found != before.end())
                std::ranges::move(found->second, std::back_inserter(made));
            if (!instruction || !replaced.contains(instruction)) made.push_back(std::move(statement));
        }
        function_.body->statements = std::move(made);
    }

    Function& function_;
    const Graph graph_;
    const std::vector<size_t> joins_;
    const std::vector<bool> apart_, apart_in_warp_;
    const std::vector<Loop> loops_;
    std::vector<bool> partial_;                   // blocks behind a barrier of some threads
    bool some_wait_ = false;                      // at an operation to which not all threads come
    std::set<const Instruction*> outer_;          // not in scopes inside the body
    std::set<size_t> looks_;                      // blocks of barriers in loops
    std::set<size_t> meetings_;                   // blocks that threads come to from loops
    std::map<const Instruction*, Round> rounds_;  // by the branch at their end
};

FormKind checked(FormKind form) {
    if (form == FormKind::kFree) return FormKind::kFreeChecked;
    return form == FormKind::kSingle ? FormKind::kSingleChecked : FormKind::kWorkerChecked;
}

std::string refuse(const Function& entry, const Verdict& verdict, const Effects& effects) {
    bool fenced = false;
    each_instruction(*entry.body, [&](const Instruction& instruction) {
        fenced |= fence::is_fence_function(callee(instruction));
    });
    if (fenced) return "it is fenced";
    if (!effects.refusal.empty()) return effects.refusal;
    for (const Origins& written : effects.writes)
        if (written.size() == 1 && effects.reads.contains(written)) return "it writes memory that it reads";
    if (verdict.copies) return "it starts asynchronous copies";
    std::string ordered;
    each_instruction(*entry.body, [&](const Instruction& instruction) {
        if (is_ordered(instruction)) ordered = "it has accesses that are volatile or ordered";
    });
    return ordered;
}

}  // namespace

Inside check_inside(const Function& entry, const Module& module, Verdict& verdict) {
    Inside inside{"", entry, effects_of(module, entry)};
    inside.refusal = refuse(entry, verdict, inside.effects);
    if (inside.refusal.empty()) inside.refusal = Checks(inside.function).add();
    if (!inside.refusal.empty()) return inside;
    verdict.form = checked(verdict.form);
    return inside;
}

}  // namespace smt::ptx::persistent
