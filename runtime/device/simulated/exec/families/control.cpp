// Control flow: branches, calls, the ways out.
#include "runtime/device/simulated/exec/families/control.h"

#include <fmt/format.h>

#include "runtime/device/simulated/exec/families/builtins.h"
#include "runtime/device/simulated/exec/families/lanes.h"
#include "runtime/device/simulated/exec/spaces.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {
namespace {

uint32_t meeting_place(const Execution& x, const Instruction& in) {
    const Code& code = *x.group->code;
    return code.reconvergence[static_cast<size_t>(&in - code.instructions.data())];
}

void run_branch(Execution& x, const Instruction& in) {
    x.cta->branch(x, x.mask, in.target, meeting_place(x, in));
}

void decode_bra(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.always = true;
    in.run = run_branch;
    d.branch_to(in, s.operands[0].name);
}

// target: the table. Each place that some threads go to becomes a way.
void run_branch_table(Execution& x, const Instruction& in) {
    Group& group = *x.group;
    const auto& table = group.code->tables[static_cast<size_t>(in.value)];
    const uint32_t* index = x.at<uint32_t>(in.a);
    std::array<Cta::State::Way, kLanes + 1> ways{};
    size_t count = 0;
    if (const uint32_t rest = group.mask & ~x.mask; rest != 0) ways[count++] = {rest, group.pc};
    bool bad = false;
    for_lanes(x.mask, [&](int lane) {
        if (bad || index[lane] >= table.size()) {
            if (!bad)
                x.cta->fail(x, Fault::Kind::kBadBranch, lane, Space::kNone, 0, 0,
                            fmt::format("branch to entry {} of {}", index[lane], table.size()));
            bad = true;
            return;
        }
        const uint32_t to = table[index[lane]];
        for (size_t i = 0; i < count; ++i) {
            if (ways[i].pc != to) continue;
            ways[i].mask |= 1u << lane;
            return;
        }
        ways[count++] = {1u << lane, to};
    });
    if (bad) return;
    if (count == 1) {
        group.pc = ways[0].pc;
        return;
    }
    x.left = true;
    x.cta->diverge(*x.warp, group, std::span(ways.data(), count), meeting_place(x, in));
}

void decode_brx(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const ptx::Targets* targets = d.targets(s.operands[1].name);
    if (targets == nullptr) return d.refuse(fmt::format("no .branchtargets {} here", s.operands[1].name));
    in.always = true;
    in.a = d.read(s.operands[0], Type::kU32);
    in.value = d.table(targets->targets);
    in.run = run_branch_table;
}

// ---- leaving

void run_exit(Execution& x, const Instruction&) {
    x.left = true;
    const uint32_t rest = x.group->mask & ~x.mask;
    Group& group = *x.group;
    Warp& warp = *x.warp;
    x.cta->exit_threads(warp, group, x.mask);
    if (rest != 0 && group.pc == group.meet) x.cta->settle(warp, &group);
}

void decode_exit(Decoder& d, const ptx::Instruction&, Instruction& in) {
    d.flow(Flow::kLeave);
    in.run = run_exit;
}

// A branch to the last instruction.
void run_return(Execution& x, const Instruction& in) {
    x.cta->branch(x, x.mask, x.group->code->last(), meeting_place(x, in));
}

void decode_ret(Decoder& d, const ptx::Instruction&, Instruction& in) {
    d.leave(in);
    in.always = true;
    in.run = run_return;
}

void run_trap(Execution& x, const Instruction&) {
    x.cta->fail(x, Fault::Kind::kTrap, std::countr_zero(x.mask), Space::kNone, 0, 0, "trap");
}

void decode_trap(Decoder& d, const ptx::Instruction&, Instruction& in) {
    d.flow(Flow::kLeave);
    in.run = run_trap;
}

void run_breakpoint(Execution& x, const Instruction&) {
    x.cta->fail(x, Fault::Kind::kTrap, std::countr_zero(x.mask), Space::kNone, 0, 0,
                "breakpoint without a debugger");
}

void decode_brkpt(Decoder&, const ptx::Instruction&, Instruction& in) { in.run = run_breakpoint; }

// ---- calls

// All threads of the group call the same function.
void enter(Execution& x, Group& group, const Code& code, const Call& call) {
    if (code.builtin == Builtin::kNone) {
        x.cta->push_frame(x, *x.warp, group, code, call);
        return;
    }
    run_builtin(x, code.builtin, call);
}

void run_call(Execution& x, const Instruction& in) {
    Group& group = *x.group;
    const Call& call = group.code->calls[static_cast<size_t>(in.value)];
    const Code& code = *group.code->program->functions[call.function];
    if (x.mask == group.mask || code.builtin != Builtin::kNone) return enter(x, group, code, call);
    // Some threads stay: they wait behind the call.
    x.left = true;
    const uint32_t behind = group.pc;
    Group* child = x.cta->child_of(*x.warp, group, x.mask, behind, behind);
    x.group = child;
    enter(x, *child, code, call);
    x.cta->pick(*x.warp);
}

const Code* function_at(Execution& x, uint64_t address, int lane) {
    const Program& program = *x.group->code->program;
    const uint64_t number = (address - kFunctionWindow) / 16 - 1;
    if (!in_window(address, kFunctionWindow) || address % 16 != 0 || number >= program.functions.size()) {
        x.cta->fail(x, Fault::Kind::kBadCall, lane, Space::kNone, 0, 0,
                    fmt::format("call of {:#x}, which is no function", address));
        return nullptr;
    }
    const Code* code = program.functions[number].get();
    if (code != nullptr) return code;
    const std::string& why = program.refusals[number];
    x.cta->fail(x, Fault::Kind::kBadCall, lane, Space::kNone, 0, 0,
                why.empty() ? "call of a function that the module does not define"
                            : fmt::format("call of a function that cannot be run ({})", why));
    return nullptr;
}

void run_indirect_call(Execution& x, const Instruction& in) {
    Group& group = *x.group;
    Warp& warp = *x.warp;
    const Call& call = group.code->calls[static_cast<size_t>(in.value)];
    const uint64_t* target = x.at<uint64_t>(in.a);
    const uint64_t first = target[std::countr_zero(x.mask)];
    uint32_t same = 0;
    for_lanes(x.mask, [&](int lane) { same |= target[lane] == first ? 1u << lane : 0; });
    if (same == group.mask) {
        const Code* code = function_at(x, first, std::countr_zero(same));
        if (code != nullptr) enter(x, group, *code, call);
        return;
    }
    x.left = true;
    const uint32_t behind = group.pc;
    const Execution before = x;
    std::array<uint64_t, kLanes> targets{};
    std::memcpy(targets.data(), target, sizeof(targets));
    for (uint32_t rest = before.mask; rest != 0;) {
        const int lane = std::countr_zero(rest);
        uint32_t these = 0;
        for_lanes(rest, [&](int i) {
            these |= targets[static_cast<size_t>(i)] == targets[static_cast<size_t>(lane)] ? 1u << i : 0;
        });
        rest &= ~these;
        x = before;
        const Code* code = function_at(x, targets[static_cast<size_t>(lane)], lane);
        if (code == nullptr) return;
        Group* child = x.cta->child_of(warp, group, these, behind, behind);
        x.group = child;
        x.mask = these;
        enter(x, *child, *code, call);
        if (code->builtin != Builtin::kNone) x.cta->settle(warp, child);  // it is behind the call already
    }
    x.left = true;
    x.cta->pick(warp);
}

void run_leave_function(Execution& x, const Instruction&) { x.cta->pop_frame(x, *x.warp, *x.group); }

// The parameters and results of what is called, by its declaration or prototype.
struct Signature {
    const std::vector<ptx::Variable>* parameters = nullptr;
    const std::vector<ptx::Variable>* results = nullptr;
};

Signature signature_of(Decoder& d, const ptx::Instruction& s, std::optional<uint32_t> number) {
    if (number) {
        const auto& entry = d.linked().functions[*number];
        const ptx::Function* function = entry.definition != nullptr ? entry.definition : entry.declaration;
        return {&function->parameters, &function->results};
    }
    const std::string& name = s.operands[3].name;
    if (const ptx::Prototype* prototype = d.prototype(name))
        return {&prototype->parameters, &prototype->results};
    // A list of functions that may be meant: they are alike.
    if (const ptx::Targets* targets = d.targets(name); targets != nullptr && !targets->targets.empty())
        if (auto first = d.find_function(targets->targets[0])) return signature_of(d, s, first);
    return {};
}

void decode_call(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const ptx::Operand& target = s.operands[1];
    const bool indirect = target.kind == ptx::Operand::Kind::kRegister;
    std::optional<uint32_t> number;
    if (!indirect) {
        number = d.find_function(target.name);
        if (!number) return d.refuse(fmt::format("{} is not defined", target.name));
    } else if (s.operands.size() < 4) {
        return d.refuse("an indirect call needs a prototype");
    }
    const Signature signature = signature_of(d, s, number);
    if (signature.parameters == nullptr)
        return d.refuse(fmt::format("no prototype {} here", s.operands[3].name));
    const auto& arguments = s.operands[2].elements;
    const auto& results = s.operands[0].elements;
    if (arguments.size() != signature.parameters->size() || results.size() != signature.results->size())
        return d.refuse(fmt::format("{} is called with {} arguments and {} results, it has {} and {}",
                                    target.name, arguments.size(), results.size(),
                                    signature.parameters->size(), signature.results->size()));
    Call call;
    call.indirect = indirect;
    if (number) call.function = *number;
    if (indirect) {
        in.a = d.read(target, Type::kB64);
        d.program().calls_unknown = true;
    }
    for (size_t i = 0; i < arguments.size(); ++i)
        call.arguments.push_back(d.place_of(arguments[i], (*signature.parameters)[i], false));
    for (size_t i = 0; i < results.size(); ++i)
        call.results.push_back(d.place_of(results[i], (*signature.results)[i], true));
    in.value = d.code().calls.size();
    d.code().calls.push_back(std::move(call));
    in.run = indirect ? run_indirect_call : run_call;
}

}  // namespace

Handler leave_kernel() { return run_exit; }
Handler leave_function() { return run_leave_function; }

void add_control(std::vector<Row>& rows) {
    const auto row = [&](Opcode opcode, const char* allowed, auto decode, const char* note = "") {
        rows.push_back({"Control flow", opcode, {}, modifiers(allowed), {}, {}, Unit::kBranch, decode, note});
    };
    row(Opcode::kBra, "uni", decode_bra);
    row(Opcode::kBrx, "idx uni", decode_brx);
    row(Opcode::kCall, "uni", decode_call,
        "direct, indirect, recursive; vprintf, malloc, free and __assertfail are built in");
    row(Opcode::kRet, "uni", decode_ret);
    row(Opcode::kExit, "", decode_exit);
    row(Opcode::kTrap, "", decode_trap);
    row(Opcode::kBrkpt, "", decode_brkpt, "ends the kernel, as without a debugger");
}

}  // namespace smt::runtime::device::simulated
