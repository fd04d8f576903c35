// What a stream has under way, for the report of a fault: the driver does not say which kernel faulted, and
// after a fault it answers no question about streams.
//
// Records that may enqueue work are numbered. begin() comes before the driver's call, so work that can have
// faulted always has a number. Complete is what a synchronisation has waited for, and what is in front of a
// completion word that the GPU has written. Launches that the dispatcher keeps back have a number, too; for a
// report of a fault the caller says which these are.
//
// Any thread. If several threads use a stream at once, neighbouring numbers may be exchanged.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <vector>

namespace smt::runtime::server {

struct UnderWay {
    uint64_t operations = 0;
    uint64_t launches = 0;       // of those in `kernels`
    std::set<uint32_t> kernels;  // names of the journal
    bool more = false;           // there are launches, or may be, that `kernels` does not name
    bool suspect() const { return more || launches != 0; }
    void add(const UnderWay& other) {
        operations += other.operations;
        launches += other.launches;
        kernels.insert(other.kernels.begin(), other.kernels.end());
        more = more || other.more;
    }
};

class InFlight {
public:
    static constexpr uint64_t kNamed = 16;  // newest records of which the kernel is known

    uint64_t begin() {
        const uint64_t number = begun_.fetch_add(1);
        kernels_[number % kNamed].store(0, std::memory_order_relaxed);
        return number;
    }
    // The record with this number launches a kernel, or a graph.
    void name(uint64_t number, uint32_t kernel) {
        kernels_[number % kNamed].store(kernel, std::memory_order_relaxed);
    }
    // After a fault: that record had no effect, and is executed again elsewhere.
    void withdraw(uint64_t number) {
        kernels_[number % kNamed].store(0, std::memory_order_relaxed);
        withdrawn_.fetch_add(1);
    }
    // The same for the last one that was begun: a launch that no driver has.
    void withdraw_last() { withdrawn_.fetch_add(1); }
    // When the completion word has reached `value`, the first `complete` records are over.
    void ends_at(const std::atomic<uint64_t>& word, uint64_t value, uint64_t complete) {
        uint32_t change = changes_.load();
        if (change % 2 != 0 || !changes_.compare_exchange_strong(change, change + 1))
            return;  // another thread
        word_.store(&word);
        value_.store(value);
        complete_.store(complete);
        changes_.store(change + 2);
    }
    // `synchronized`: records that are known to be over. `held`: kernels of launches that have not begun, a
    // name for each; they do not count.
    UnderWay under_way(uint64_t synchronized, std::vector<uint32_t> held = {}) const {
        const uint64_t complete = std::max(synchronized, complete_by_word()), begun = begun_.load();
        const uint64_t withdrawn = withdrawn_.load();
        UnderWay all;
        if (begun <= complete + withdrawn) return all;
        all.operations = begun - complete - withdrawn;
        all.operations -= std::min<uint64_t>(all.operations, held.size());
        const uint64_t unnamed = begun - complete > kNamed ? begun - complete - kNamed : 0;
        for (uint64_t number = begun; number-- > complete + unnamed;) {
            const uint32_t kernel = kernels_[number % kNamed].load(std::memory_order_relaxed);
            if (kernel == 0) continue;
            const auto at = std::find(held.begin(), held.end(), kernel);
            if (at != held.end()) {
                held.erase(at);
                continue;
            }
            ++all.launches;
            all.kernels.insert(kernel);
        }
        all.more = unnamed > held.size();
        return all;
    }

    // The first number that may be under way; those from there on are under_way().operations.
    uint64_t first_left(uint64_t synchronized) const { return std::max(synchronized, complete_by_word()); }

private:
    uint64_t complete_by_word() const {
        const uint32_t change = changes_.load();
        const std::atomic<uint64_t>* word = word_.load();
        const uint64_t value = value_.load(), complete = complete_.load();
        const bool steady = change % 2 == 0 && changes_.load() == change;
        return steady && word && word->load() >= value ? complete : 0;
    }

    std::atomic<uint64_t> begun_{0};
    std::atomic<uint64_t> withdrawn_{0};  // the last ones: nothing was complete after them
    std::array<std::atomic<uint32_t>, kNamed> kernels_{};
    std::atomic<uint32_t> changes_{0};  // odd: a thread is in ends_at()
    std::atomic<const std::atomic<uint64_t>*> word_{nullptr};
    std::atomic<uint64_t> value_{0};
    std::atomic<uint64_t> complete_{0};
};

}  // namespace smt::runtime::server
