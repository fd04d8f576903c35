// What a policy wants of each kernel: the whole of it at each decision, reduced to what has changed since the
// last one.
//
// A policy says it of every kernel that it governs. A kernel that it does not mention is left as it is. A
// stopping kernel is left to stop; the policy is called again when it has stopped. A kernel in another state
// than the wanted one is named again. Not thread-safe.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/schedule/decision.h"
#include "runtime/schedule/lookup.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

class Wanted {
public:
    // `reason`: text, or a function that makes it. It is rarely needed: most decisions repeat the last one.
    template <class Reason>
    void wait(const Kernel& kernel, const Reason& reason) {
        if (kernel.state != Kernel::State::kRunning) return;
        said_of(kernel).word = Word::kWait;
        add(decision_.assignments, {kernel.id, Assignment::Action::kWait, text(reason), {}, 0});
    }

    template <class Reason>
    void run(const Kernel& kernel, std::span<const uint8_t> quota, uint64_t slice, const Reason& reason) {
        if (kernel.state == Kernel::State::kStopping) return;
        Said& said = said_of(kernel);
        const bool same =
            said.word == Word::kRun && said.slice == slice && std::ranges::equal(said.quota, quota);
        if (same && kernel.state == Kernel::State::kRunning) return;
        said.word = Word::kRun;
        said.slice = slice;
        said.quota.assign(quota.begin(), quota.end());
        add(decision_.assignments, {kernel.id, Assignment::Action::kRun, text(reason), said.quota, slice});
    }
    template <class Reason>
    void run(const Kernel& kernel, const Reason& reason) {
        run(kernel, {}, 0, reason);
    }

    // It is stopped, or was to be and could not yet.
    bool waits(const Kernel& kernel) {
        if (kernel.state == Kernel::State::kWaiting) return true;
        return kernel.state == Kernel::State::kRunning && !said_.empty() &&
               said_of(kernel).word == Word::kWait;
    }
    // Ends that. A kernel that runs goes on with what it has.
    template <class Reason>
    void resume(const Kernel& kernel, const Reason& reason) {
        if (waits(kernel)) run(kernel, reason);
    }

    // The kernel runs, and was last given a quota.
    bool has_quota(const Kernel& kernel) {
        if (kernel.state != Kernel::State::kRunning) return false;
        const Said& said = said_of(kernel);
        return said.word == Word::kRun && !said.quota.empty();
    }

    void confine(Confinement&& confinement) { add(decision_.confinements, std::move(confinement)); }
    void tell(const Attained& attained) { decision_.attained.push_back(attained); }
    void ask_again(Duration after) { decision_.ask_again(after); }
    void repeat(const Decision& decision) { decision_ = decision; }  // of another policy, instead of all else

    // Around what a policy says. Kernels that are gone are forgotten.
    void begin(const Snapshot& snapshot) {
        decision_ = {};
        next_ = 0;
        size_t next = 0;
        std::erase_if(said_, [&](const Said& said) {
            return find_from(snapshot.kernels, next, [&](const Kernel& kernel) {
                       return kernel.id == said.id;
                   }) == snapshot.kernels.size();
        });
    }
    Decision end() { return std::exchange(decision_, {}); }

private:
    enum class Word : uint8_t { kNone, kWait, kRun };
    struct Said {
        uint64_t id;
        Word word = Word::kNone;
        Quota quota = {};
        uint64_t slice = 0;
    };
    Said& said_of(const Kernel& kernel) {
        const size_t place = find_from(said_, next_, [&](const Said& each) { return each.id == kernel.id; });
        return place < said_.size() ? said_[place] : said_.emplace_back(kernel.id);
    }
    template <class Reason>
    static std::string text(const Reason& reason) {
        if constexpr (std::invocable<const Reason&>)
            return reason();
        else
            return reason;
    }
    template <class Entry>
    static void add(std::vector<Entry>& to, Entry&& entry) {
        if (to.empty()) to.reserve(8);  // one allocation for most
        to.push_back(std::move(entry));
    }

    std::vector<Said> said_;
    size_t next_ = 0;  // behind the entry that was found last
    Decision decision_;
};

}  // namespace smt::runtime::schedule
