#include "rewriter/ptx/effects.h"

#include <algorithm>
#include <optional>

#include "rewriter/ptx/layout.h"
#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx {

namespace {

constexpr uint32_t kAddressBytes = 8;

// Where a value may come from, if it is an address.
struct Origin {
    Origins parameters;
    bool own = false;    // of shared or local memory
    bool other = false;  // from elsewhere: loaded, put together, a variable's

    // Whether it has become more.
    bool add(const Origin& more) {
        const size_t before = parameters.size() + own + other;
        parameters.insert(more.parameters.begin(), more.parameters.end());
        own |= more.own;
        other |= more.other;
        return parameters.size() + own + other != before;
    }
};

const Origin kNone, kOwn{{}, true, false}, kOther{{}, false, true};

bool wide(const Instruction& instruction) {
    return instruction.has(Modifier::kWide) || std::any_of(instruction.types.begin(), instruction.types.end(),
                                                           [](Type type) { return bits(type) >= 64; });
}

bool is_private(Space space) { return space == Space::kShared || space == Space::kLocal; }

// The space that an access names; kRegister: none, so the address is generic.
Space space_of(const Instruction& instruction) {
    using enum Modifier;
    if (instruction.has(kGlobal)) return Space::kGlobal;
    if (instruction.first({kShared, kSharedCta})) return Space::kShared;
    if (instruction.has(kLocal)) return Space::kLocal;
    if (instruction.first({kParam, kParamEntry, kParamFunc})) return Space::kParameter;
    if (instruction.has(kConst)) return Space::kConstant;
    return Space::kRegister;
}

// What of the place or the time of a run a register has, so that another run may read another value.
bool varies(Special special) {
    using enum Special;
    switch (special) {
        case kTid:
        case kNtid:
        case kLaneid:
        case kCtaid:
        case kNctaid:
        case kLanemaskEq:
        case kLanemaskLe:
        case kLanemaskLt:
        case kLanemaskGe:
        case kLanemaskGt:
        case kTotalSmemSize:
        case kDynamicSmemSize:
            return false;
        default:
            return true;
    }
}

// Computes registers from registers.
bool computes(const Instruction& instruction) {
    const Opcode opcode = instruction.opcode;
    if (opcode == Opcode::kMov || opcode == Opcode::kCvt || opcode == Opcode::kCvta) return true;
    if (opcode >= Opcode::kAdd && opcode <= Opcode::kMadc) return true;
    if (opcode >= Opcode::kTestp && opcode <= Opcode::kShr) return true;
    if (opcode >= Opcode::kVadd && opcode <= Opcode::kVset4) return true;
    switch (opcode) {
        case Opcode::kShfl:
        case Opcode::kPrmt:
        case Opcode::kVote:
        case Opcode::kMatch:
        case Opcode::kRedux:
        case Opcode::kMma:
        case Opcode::kMovmatrix:
        case Opcode::kIsspacep:
        case Opcode::kCreatepolicy:
            return true;
        case Opcode::kWmma:
            return instruction.has(Modifier::kMma);
        default:
            return false;
    }
}

// Neither memory nor a result.
bool only_steers(const Instruction& instruction) {
    switch (instruction.opcode) {
        case Opcode::kBra:
        case Opcode::kBrx:
        case Opcode::kRet:
        case Opcode::kExit:
        case Opcode::kBar:
        case Opcode::kNanosleep:
        case Opcode::kPrefetch:
        case Opcode::kPrefetchu:
        case Opcode::kPmevent:
            return true;
        case Opcode::kBarrier:
            return !instruction.has(Modifier::kCluster);
        default:
            return false;
    }
}

bool is_product(Opcode opcode) {
    using enum Opcode;
    return opcode == kMul || opcode == kMul24 || opcode == kDiv || opcode == kRem || opcode == kShl ||
           opcode == kShr;
}

class Reader {
public:
    Reader(const Module& module, const Function& kernel) : kernel_(kernel) {
        for (const Declaration& declaration : module.declarations)
            if (const auto* variable = std::get_if<Variable>(&declaration)) note(*variable);
        uint64_t offset = 0;
        for (const Variable& parameter : kernel.parameters) {
            const uint64_t alignment = alignment_of(parameter);
            offset = (offset + alignment - 1) / alignment * alignment;
            parameters_[parameter.name] = static_cast<uint32_t>(offset);
            offset += bytes_of(parameter);
        }
        persistent::each_statement(*kernel.body, [this](const Statement& statement) {
            if (const auto* variable = std::get_if<Variable>(&statement)) note(*variable);
        });
    }

    Effects read() {
        changed_ = true;
        while (changed_) {
            changed_ = false;
            each([this](const Instruction& instruction) { follow(instruction); });
        }
        each([this](const Instruction& instruction) { count(instruction); });
        each([this](const Instruction& instruction) { judge(instruction); });
        if (!effects_.refusal.empty()) return {effects_.refusal, {}, {}};
        return effects_;
    }

private:
    template <typename Visit>
    void each(const Visit& visit) {
        persistent::each_instruction(*kernel_.body, visit);
    }

    void note(const Variable& variable) {
        if (is_private(variable.space)) own_.insert(variable.name);
    }

    void refuse(const std::string& reason) {
        if (effects_.refusal.empty()) effects_.refusal = reason;
    }

    void give(const Operand& result, const Origin& origin) {
        if (result.kind == Operand::Kind::kRegister) changed_ |= registers_[result.name].add(origin);
        for (const Operand& element : result.elements) give(element, origin);
    }

    Origin origin_of(const Operand& operand) const {
        switch (operand.kind) {
            case Operand::Kind::kRegister: {
                const auto found = registers_.find(operand.name);
                return found == registers_.end() ? kNone : found->second;
            }
            case Operand::Kind::kSymbol:
                return own_.contains(operand.name) ? kOwn : kOther;
            case Operand::Kind::kAddress:
                return operand.elements.empty() ? kNone : origin_of(operand.elements[0]);
            case Operand::Kind::kVector:
                return kOther;  // put together
            default:
                return kNone;
        }
    }

    // ---- where values come from

    void follow(const Instruction& instruction) {
        if (instruction.operands.empty() || !wide(instruction)) return;
        const Operand& result = instruction.operands[0];
        if (instruction.opcode == Opcode::kLd && space_of(instruction) == Space::kParameter)
            return follow_parameter(instruction);
        if (instruction.opcode == Opcode::kLd || instruction.opcode == Opcode::kLdu)
            return give(result, kOther);
        if (!computes(instruction) || is_product(instruction.opcode)) return;
        const bool fused = instruction.opcode == Opcode::kMad || instruction.opcode == Opcode::kMad24 ||
                           instruction.opcode == Opcode::kMadc || instruction.opcode == Opcode::kFma;
        Origin origin;
        for (size_t i = fused ? 3 : 1; i < instruction.operands.size(); ++i)
            origin.add(origin_of(instruction.operands[i]));
        if (instruction.opcode == Opcode::kCvta && instruction.first({Modifier::kShared, Modifier::kLocal}))
            origin = kOwn;
        give(result, origin);
    }

    void follow_parameter(const Instruction& instruction) {
        const Operand& result = instruction.operands[0];
        const Operand& address = instruction.operands[1];
        const bool plain = address.kind == Operand::Kind::kAddress && address.elements.size() == 1 &&
                           address.elements[0].kind == Operand::Kind::kSymbol;
        const auto found = plain ? parameters_.find(address.elements[0].name) : parameters_.end();
        if (found == parameters_.end() || instruction.types.empty() || bits(instruction.types[0]) != 64)
            return give(result, kOther);
        auto offset = static_cast<uint32_t>(found->second + address.offset + address.elements[0].offset);
        if (result.kind != Operand::Kind::kVector) return give(result, {{offset}, false, false});
        for (const Operand& element : result.elements) {
            give(element, {{offset}, false, false});
            offset += kAddressBytes;
        }
    }

    // ---- what it does

    void count(const Instruction& instruction) {
        const auto named = [this](const Operand& each) {
            if (each.kind == Operand::Kind::kRegister) ++named_[each.name];
        };
        if (instruction.guard) ++named_[instruction.guard->name];
        for (const Operand& operand : instruction.operands) persistent::each_operand(operand, named);
        if (instruction.opcode == Opcode::kAtom && !instruction.operands.empty())
            persistent::each_operand(instruction.operands[0], [this](const Operand& each) {
                if (each.kind == Operand::Kind::kRegister) --named_[each.name];
            });
    }

    // An atomic of shared memory that leaves the same whatever the order of the threads.
    bool in_any_order(const Instruction& instruction) {
        using enum Modifier;
        const auto operation = instruction.first({kAdd, kMin, kMax, kAnd, kOr, kXor});
        const bool integer = std::ranges::all_of(instruction.types, [](Type type) {
            return type == Type::kU32 || type == Type::kS32 || type == Type::kB32 || type == Type::kU64 ||
                   type == Type::kS64 || type == Type::kB64;
        });
        if (!operation || !integer || !is_private(space_of(instruction))) return false;
        if (instruction.first({kAcquire, kRelease, kAcqRel, kSharedCluster, kAsync})) return false;
        bool unread = true;
        if (instruction.opcode == Opcode::kAtom)
            persistent::each_operand(instruction.operands[0], [&](const Operand& each) {
                unread &= each.kind != Operand::Kind::kRegister || named_[each.name] == 0;
            });
        if (!operation_) operation_ = operation;
        return unread && operation_ == operation;
    }

    void judge(const Instruction& instruction) {
        for (const Operand& operand : instruction.operands)
            persistent::each_operand(operand, [this](const Operand& each) {
                if (each.kind == Operand::Kind::kSpecial && varies(each.special))
                    refuse(std::string("it reads ") + name(each.special));
            });
        switch (instruction.opcode) {
            case Opcode::kLd:
            case Opcode::kLdu:
                return access(instruction, instruction.operands[1], false);
            case Opcode::kSt:
                return access(instruction, instruction.operands[0], true);
            case Opcode::kLdmatrix:
            case Opcode::kStmatrix:
                return;  // shared memory
            case Opcode::kCp:
                return copy(instruction);
            case Opcode::kCall:
                return refuse("it calls a function");
            case Opcode::kAtom:
            case Opcode::kRed:
                if (!in_any_order(instruction)) refuse("it has atomics");
                return;
            default:
                if (!computes(instruction) && !only_steers(instruction))
                    refuse(std::string("it has the instruction ") + name(instruction.opcode));
        }
    }

    void access(const Instruction& instruction, const Operand& address, bool writes) {
        using enum Modifier;
        const Space space = space_of(instruction);
        if (instruction.first({kSharedCluster, kAsync, kBulk}))
            return refuse("it has accesses of other blocks' shared memory, or asynchronous ones");
        if (is_private(space) || space == Space::kParameter || space == Space::kConstant) return;
        const Origin origin = origin_of(address);
        if (space == Space::kRegister && origin.own && !origin.other && origin.parameters.empty()) return;
        if (instruction.first({kVolatile, kRelaxed, kAcquire, kRelease, kMmio, kCv}))
            return refuse("it has accesses that are volatile or ordered");
        note_access(origin, writes);
    }

    void note_access(const Origin& origin, bool writes) {
        if (origin.other || origin.own || origin.parameters.empty())
            return refuse(std::string("it ") + (writes ? "writes" : "reads") +
                          " memory of which the address is not a parameter");
        (writes ? effects_.writes : effects_.reads).insert(origin.parameters);
    }

    // From global to shared memory, without a tensor map.
    void copy(const Instruction& instruction) {
        using enum Modifier;
        if (instruction.first({kCommitGroup, kWaitGroup, kWaitAll}) && !instruction.has(kBulk)) return;
        if (instruction.first({kBulk, kTensor, kReduce, kMbarrier}) || instruction.operands.size() < 2)
            return refuse("it has copies in bulk");
        note_access(origin_of(instruction.operands[1]), false);
    }

    const Function& kernel_;
    std::map<std::string, uint32_t> parameters_;  // their offsets
    std::set<std::string> own_;                   // variables of shared and local memory
    std::map<std::string, Origin> registers_;
    std::map<std::string, size_t> named_;  // registers: how often, but for results of atomics
    std::optional<Modifier> operation_;    // of its atomics
    Effects effects_;
    bool changed_ = false;
};

}  // namespace

Effects effects_of(const Module& module, const Function& kernel) { return Reader(module, kernel).read(); }

std::variant<std::map<std::string, Effects>, Diagnostic> effects_in(std::string_view text) {
    const auto parsed = parse(text);
    if (const auto* diagnostic = std::get_if<Diagnostic>(&parsed)) return *diagnostic;
    const Module& module = std::get<Module>(parsed);
    std::map<std::string, Effects> all;
    for (const Declaration& declaration : module.declarations)
        if (const auto* function = std::get_if<Function>(&declaration);
            function && function->kernel && function->body)
            all[function->name] = effects_of(module, *function);
    return all;
}

}  // namespace smt::ptx
