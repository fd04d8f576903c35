// Reduces a policy's decisions to what has changed since the last ones.
//
// A stopping kernel is left to stop; the policy is called again when it has stopped. A kernel in another
// state than the requested one is named again. Not thread-safe.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/schedule/policies/lookup.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

class DecisionDiff {
public:
    // `reason` is a function because it is rarely needed: most decisions repeat the last one.
    template <class Reason>
    void wait(Decision& decision, const Kernel& kernel, const Reason& reason) {
        said_of(kernel).runs = false;
        if (kernel.state == Kernel::State::kRunning)
            add(decision, {kernel.id, Assignment::Action::kWait, reason(), {}, 0});
    }

    template <class Reason>
    void run(Decision& decision, const Kernel& kernel, std::span<const uint8_t> quota, uint64_t slice,
             const Reason& reason) {
        if (kernel.state == Kernel::State::kStopping) return;
        Said& said = said_of(kernel);
        const bool same = said.runs && said.slice == slice && std::ranges::equal(said.quota, quota);
        if (same && kernel.state == Kernel::State::kRunning) return;
        said.runs = true;
        said.slice = slice;
        said.quota.assign(quota.begin(), quota.end());
        add(decision, {kernel.id, Assignment::Action::kRun, reason(), said.quota, slice});
    }

    // The kernel runs, and its last decision was a quota.
    bool keeps_quota(const Kernel& kernel) {
        if (kernel.state != Kernel::State::kRunning) return false;
        const Said& said = said_of(kernel);
        return said.runs && !said.quota.empty();
    }

    // Call this before the first wait() or run() of a decision. Forgets kernels that are gone.
    void keep_only(const Snapshot& snapshot) {
        next_ = 0;
        size_t next = 0;
        std::erase_if(said_, [&](const Said& said) {
            return find_from(snapshot.kernels, next, [&](const Kernel& kernel) {
                       return kernel.id == said.id;
                   }) == snapshot.kernels.size();
        });
    }

private:
    struct Said {
        uint64_t id;
        bool runs = false;  // false: it waits, or there was no decision
        Quota quota = {};
        uint64_t slice = 0;
    };
    Said& said_of(const Kernel& kernel) {
        const size_t place = find_from(said_, next_, [&](const Said& each) { return each.id == kernel.id; });
        return place < said_.size() ? said_[place] : said_.emplace_back(kernel.id);
    }
    static void add(Decision& decision, Assignment&& assignment) {
        if (decision.assignments.empty()) decision.assignments.reserve(8);  // one allocation for most
        decision.assignments.push_back(std::move(assignment));
    }

    std::vector<Said> said_;
    size_t next_ = 0;  // behind the entry that was found last
};

}  // namespace smt::runtime::schedule
