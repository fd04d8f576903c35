#include "rewriter/ptx/persistent/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewriter/ptx/persistent/divergence.h"
#include "rewriter/ptx/persistent/rules.h"
#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

constexpr uint64_t kSharedRoom = 48 * 1024;  // of a kernel, not counting what its launch asks for

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
        if (bytes + kLoopBytes > kSharedRoom)
            return fmt::format("has {} bytes of shared memory, which leaves no room for {}", bytes,
                               kLoopBytes);
        return refuse_pointers();
    }

    std::string once() const {
        for (const Facts* facts : reached_)
            if (!facts->once.empty()) return facts->once + where(*facts);
        auto wide = [&](const Instruction& instruction) {
            if (instruction.opcode != Opcode::kCall) return is_wide(instruction);
            const std::string name = callee(instruction);
            return name.empty() ? indirect_is_wide() : facts_.is_wide(facts_.resolve(name));
        };
        for (const Facts* facts : reached_)
            if (leaves_early(*facts->function, wide))
                return "some threads may leave ahead of a barrier or a warp-wide operation" + where(*facts);
        return "";
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

    std::string where(const Facts& facts) const {
        return facts.function == &entry_ ? "" : fmt::format(" (in {})", facts.function->name);
    }

    bool indirect_is_wide() const {
        return std::any_of(facts_.addressed().begin(), facts_.addressed().end(),
                           [&](const std::string& name) { return facts_.is_wide(name); });
    }

    // A pointer leads to one function, whoever calls it: there is no place for a copy.
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
    verdict.once = judge.once();
    verdict.copied = judge.copied();
    verdict.copies = judge.copies();
    if (!verdict.once.empty()) {
        verdict.form = verdict.copied.empty() ? FormKind::kSingle : FormKind::kSingleShared;
    } else if (!verdict.copied.empty()) {
        verdict.form = FormKind::kShared;
    } else {
        verdict.form = judge.shares() ? FormKind::kWorker : FormKind::kFree;
    }
    return verdict;
}

}  // namespace smt::ptx::persistent
