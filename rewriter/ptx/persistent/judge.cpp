#include "rewriter/ptx/persistent/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewriter/ptx/persistent/divergence.h"
#include "rewriter/ptx/persistent/rules.h"
#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

constexpr uint64_t kSharedRoom = 48 * 1024;  // of a kernel, not counting what its launch asks for
constexpr uint64_t kWarp = 32;               // threads

// Whether its blocks have no more threads than a warp; false where the text does not say.
bool is_one_warp(const Function& entry) {
    const Directive* bounds = entry.find(Directive::Kind::kReqntid);
    if (!bounds) bounds = entry.find(Directive::Kind::kMaxntid);
    if (!bounds) return false;
    uint64_t threads = 1;
    for (uint64_t each : bounds->values) threads *= std::min<uint64_t>(each, kWarp + 1);
    return threads <= kWarp;
}

class Judge {
public:
    Judge(const Function& entry, const ModuleFacts& facts)
        : entry_(entry), facts_(facts), reached_(facts.reach(entry.name)) {}

    std::string refuse() const {
        bool sm = false, sms = false;
        for (const Facts* facts : reached_) {
            if (!facts->refusal.empty()) return facts->refusal + where(*facts);
            sm |= facts->sm;
            sms |= facts->sms;
        }
        for (const std::string& name : facts_.unseen(entry_.name))
            if (std::string reason = refuse_unseen(name); !reason.empty()) return reason;
        if (sm && sms) return "chooses its work by the number of its SM (%smid and %nsmid)";
        const uint64_t bytes = facts_.shared_bytes(reached_);
        if (const uint64_t loop = loop_bytes(); bytes + loop > kSharedRoom)
            return fmt::format("has {} bytes of shared memory, which leaves no room for {}", bytes, loop);
        return refuse_pointers();
    }

    // Whether its workers may run one block after the other; if not always, `why`.
    Reuse reuse(std::string& why) const {
        for (const Facts* facts : reached_) {
            if (facts->once.empty()) continue;
            why = facts->once + where(*facts);
            return Reuse::kNever;
        }
        if (!leaves_early(Team::kBlock, Width::kWarp, why)) return Reuse::kAlways;
        if (leaves_early(Team::kBlock, Width::kBlock, why) || leaves_early(Team::kWarp, Width::kWarp, why))
            return Reuse::kNever;
        why = "warps may leave ahead of a warp-wide operation of others";
        return Reuse::kByWarps;
    }

    std::set<std::string> copied() const {
        std::set<std::string> names;
        for (const Facts* facts : reached_)
            if (!facts->function->kernel && facts_.reads_index(facts->function->name))
                names.insert(facts->function->name);
        return names;
    }

    bool shares() const {
        return any([](const Facts* facts) { return facts->shares || facts->indirect; });
    }
    bool copies() const {
        return any([](const Facts* facts) { return facts->copies; });
    }

private:
    template <typename Test>
    bool any(const Test& test) const {
        return std::any_of(reached_.begin(), reached_.end(), test);
    }

    // Each of the loop's two variables becomes a step long; the second one is for copied functions.
    uint64_t loop_bytes() const {
        const uint64_t step = facts_.dynamic_step();
        if (step == 0) return kLoopBytes;
        return copied().empty() ? step : 2 * step;
    }

    std::string where(const Facts& facts) const {
        return facts.function == &entry_ ? "" : fmt::format(" (in {})", facts.function->name);
    }

    // Some of a team's threads ahead of an operation of that width, or a wider one.
    bool leaves_early(Team team, Width width, std::string& why) const {
        auto is_wide = [&](const Instruction& instruction) { return width_of(instruction) >= width; };
        for (const Facts* facts : reached_) {
            if (!persistent::leaves_early(*facts->function, is_wide, team)) continue;
            why = "some threads may leave ahead of a barrier or a warp-wide operation" + where(*facts);
            return true;
        }
        return false;
    }

    Width width_of(const Instruction& instruction) const {
        if (instruction.opcode != Opcode::kCall) return persistent::width_of(instruction);
        const std::string name = callee(instruction);
        if (!name.empty()) return facts_.width_of(facts_.resolve(name));
        Width width = Width::kThread;
        for (const std::string& called : facts_.addressed()) width = std::max(width, facts_.width_of(called));
        return width;
    }

    // A pointer leads to one function for all callers: there is no place for a copy.
    std::string refuse_pointers() const {
        if (!any([](const Facts* facts) { return facts->indirect; })) return "";
        for (const std::string& name : facts_.addressed())
            if (facts_.reads_index(name))
                return fmt::format(
                    "calls through pointers, and {}, which reads the block's index, may be called so", name);
        return "";
    }

    const Function& entry_;
    const ModuleFacts& facts_;
    std::vector<const Facts*> reached_;
};

}  // namespace

Verdict judge(const Function& entry, const Module& module, const ModuleFacts& facts) {
    Verdict verdict;
    const Judge judge(entry, facts);
    verdict.refusal = refuse_entry(entry, module);
    if (verdict.refusal.empty()) verdict.refusal = judge.refuse();
    if (!verdict.refusal.empty()) return verdict;
    verdict.reuse = judge.reuse(verdict.limit);
    verdict.copied = judge.copied();
    verdict.copies = judge.copies();
    if (verdict.reuse == Reuse::kNever) {
        verdict.form = verdict.copied.empty() ? FormKind::kSingle : FormKind::kSingleShared;
    } else if (!verdict.copied.empty()) {
        verdict.form = FormKind::kShared;
    } else if (is_one_warp(entry)) {
        verdict.form = FormKind::kWarp;
    } else {
        verdict.form = judge.shares() ? FormKind::kWorker : FormKind::kFree;
    }
    return verdict;
}

}  // namespace smt::ptx::persistent
