#include "rewriter/ptx/fence/accesses.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::fence {

namespace {

// CUresult: what the driver reports of each natively.
constexpr int kLaunchFailed = 719, kAssert = 710;

Effect refuse(std::string reason) {
    Effect effect;
    effect.refusal = std::move(reason);
    return effect;
}

Effect refuse_word(const Instruction& instruction) {
    return refuse(fmt::format("has the instruction {}", name(instruction.opcode)));
}

enum class Where { kGlobal, kGeneric, kShared, kOwn, kElsewhere };  // kOwn: needs no check

Where where(const Instruction& instruction) {
    using enum Modifier;
    if (instruction.first({kSharedCluster, kMulticastCluster, kMmio})) return Where::kElsewhere;
    if (instruction.has(kGlobal)) return Where::kGlobal;
    if (instruction.first({kShared, kSharedCta})) return Where::kShared;
    if (instruction.first({kLocal, kConst, kParam, kParamEntry, kParamFunc})) return Where::kOwn;
    return Where::kGeneric;
}

FenceSpace space_of(Where where) {
    return where == Where::kGlobal   ? FenceSpace::kGlobal
           : where == Where::kShared ? FenceSpace::kShared
                                     : FenceSpace::kGeneric;
}

Effect access(const Instruction& instruction, size_t operand, FenceUse use) {
    const Where place = where(instruction);
    Effect effect;
    if (place == Where::kElsewhere || instruction.first({Modifier::kAsync, Modifier::kBulk}))
        return refuse("accesses other blocks' shared memory, or memory asynchronously");
    effect.waits =
        use == FenceUse::kAtomic || (use == FenceUse::kLoad && persistent::is_ordered(instruction));
    if (place == Where::kOwn) return effect;
    if (operand >= instruction.operands.size() || instruction.types.empty()) return refuse_word(instruction);
    const auto bytes = static_cast<uint32_t>(bits(instruction.types.back()) / 8 * instruction.vector_width());
    if (bytes == 0 || (bytes & (bytes - 1)) != 0) return refuse_word(instruction);
    effect.accesses.push_back({&instruction.operands[operand], space_of(place), use, bytes});
    return effect;
}

// cp.async from global to shared memory: 4 to 16 bytes, of which the fourth operand may leave out all.
Effect copy(const Instruction& instruction) {
    using enum Modifier;
    const std::vector<Operand>& operands = instruction.operands;
    if (instruction.first({kBulk, kTensor, kReduce, kPrefetch, kSharedCluster}) || !instruction.has(kAsync))
        return refuse("copies in bulk or by tensor maps (cp.async.bulk)");
    Effect effect;
    if (instruction.first({kCommitGroup, kWaitGroup, kWaitAll})) return effect;
    if (instruction.has(kMbarrier)) {
        if (operands.empty()) return refuse_word(instruction);
        const bool shared = instruction.first({kShared, kSharedCta}).has_value();
        effect.accesses.push_back(
            {operands.data(), shared ? FenceSpace::kShared : FenceSpace::kGeneric, FenceUse::kAtomic, 8});
        return effect;
    }
    const size_t hint = instruction.has(kL2CacheHint) ? 1 : 0;
    if (operands.size() < 3 + hint || operands.size() > 4 + hint ||
        operands[2].kind != Operand::Kind::kInteger)
        return refuse_word(instruction);
    const auto bytes = static_cast<uint32_t>(operands[2].bits);
    if (bytes != 4 && bytes != 8 && bytes != 16) return refuse_word(instruction);
    effect.accesses.push_back({operands.data(), FenceSpace::kShared, FenceUse::kStore, bytes});
    if (operands.size() == 4 + hint && operands[3].kind != Operand::Kind::kRegister &&
        operands[3].kind != Operand::Kind::kInteger)
        return refuse_word(instruction);
    const Operand* length = operands.size() == 4 + hint ? &operands[3] : nullptr;
    if (length && length->kind == Operand::Kind::kInteger) {
        if (length->bits == 0) return effect;
        length = nullptr;
    }
    effect.accesses.push_back({&operands[1], FenceSpace::kGlobal, FenceUse::kLoad, bytes, length});
    return effect;
}

Effect barrier_object(const Instruction& instruction) {
    using enum Modifier;
    Effect effect;
    const Where place = where(instruction);
    if (place == Where::kElsewhere || place == Where::kGlobal)
        return refuse("has barrier objects of other blocks");
    effect.waits = instruction.first({kTestWait, kTryWait}).has_value();
    for (const Operand& operand : instruction.operands)
        if (operand.kind == Operand::Kind::kAddress)
            effect.accesses.push_back({&operand, space_of(place), FenceUse::kAtomic, 8});
    return effect;
}

// One of a number of threads does not open where threads have left, and hangs.
Effect barrier(const Instruction& instruction) {
    using enum Modifier;
    const bool reduces = instruction.has(kRed);
    const size_t counted = reduces ? 4 : 2;
    if (instruction.has(kWarp) || instruction.has(kCluster)) return {};
    if (instruction.has(kArrive) || instruction.operands.size() >= counted)
        return refuse("has a barrier of a number of threads, which would wait for threads that have ended");
    return {};
}

Effect call(const Instruction& instruction) {
    const std::string function = persistent::callee(instruction);
    if (function.empty()) return refuse("calls functions through pointers");
    Effect effect;
    if (function == "__assertfail") effect.error = kAssert;
    return effect;
}

Effect cache_line(const Instruction& instruction) {
    Effect effect;
    const FenceSpace space = instruction.has(Modifier::kGlobal) ? FenceSpace::kGlobal : FenceSpace::kGeneric;
    effect.accesses.push_back({instruction.operands.data(), space, FenceUse::kStore, 128});
    return effect;
}

Effect ends() {
    Effect effect;
    effect.error = kLaunchFailed;
    return effect;
}

// Neither memory nor what another thread would wait for.
bool is_harmless(const Instruction& instruction) {
    using enum Opcode;
    const Opcode opcode = instruction.opcode;
    if (opcode >= kAdd && opcode <= kMadc) return true;
    if (opcode >= kTestp && opcode <= kShr) return true;
    if (opcode >= kVadd && opcode <= kVset4) return true;
    constexpr Opcode kOthers[] = {
        kMov,        kShfl,         kPrmt,   kCreatepolicy, kIsspacep,       kCvta,       kCvt,
        kBra,        kBrx,          kRet,    kExit,         kMembar,         kVote,       kMatch,
        kActivemask, kRedux,        kElect,  kMma,          kGriddepcontrol, kNanosleep,  kMovmatrix,
        kStacksave,  kStackrestore, kAlloca, kPmevent,      kSetmaxnreg,     kGetctarank, kPrefetchu};
    if (std::find(std::begin(kOthers), std::end(kOthers), opcode) != std::end(kOthers)) return true;
    if (opcode == kWmma) return instruction.has(Modifier::kMma);
    if (opcode == kFence) return instruction.operands.empty();
    return opcode == kPrefetch && !instruction.has(Modifier::kTensormap);
}

}  // namespace

Effect effect_of(const Instruction& instruction) {
    switch (instruction.opcode) {
        case Opcode::kLd:
        case Opcode::kLdu:
            return access(instruction, 1, FenceUse::kLoad);
        case Opcode::kSt:
            return access(instruction, 0, FenceUse::kStore);
        case Opcode::kAtom:
            return access(instruction, 1, FenceUse::kAtomic);
        case Opcode::kRed:
            return access(instruction, 0, FenceUse::kAtomic);
        case Opcode::kCp:
            return copy(instruction);
        case Opcode::kMbarrier:
            return barrier_object(instruction);
        case Opcode::kBar:
        case Opcode::kBarrier:
            return barrier(instruction);
        case Opcode::kDiscard:
        case Opcode::kApplypriority:
            return cache_line(instruction);
        case Opcode::kCall:
            return call(instruction);
        case Opcode::kTrap:
        case Opcode::kBrkpt:
            return ends();
        default:
            return is_harmless(instruction) ? Effect{} : refuse_word(instruction);
    }
}

}  // namespace smt::ptx::fence
