#include "runtime/device/cuda/stream_waits.h"

#include <algorithm>
#include <utility>

#include "runtime/device/device.h"
#include "runtime/device/held_up.h"

namespace smt::runtime::device {

namespace {

constexpr unsigned kComparison = 3;  // the bits of the flags that say how
constexpr size_t kLooks = 2;         // at earlier waits of a stream, for each one that is enqueued

uint64_t all_ones(const StreamWaits::Word& word) { return word.wide ? ~0ull : 0xffffffffull; }

// Words with the same key share one value that ends their waits (shared_value()). The comparison GEQ goes by
// the signed difference, so values that share are less than half of the range apart.
std::tuple<CUdeviceptr, unsigned, bool, uint64_t> key_of(const StreamWaits::Word& word) {
    const unsigned comparison = word.flags & kComparison;
    const uint64_t apart = comparison == CU_STREAM_WAIT_VALUE_EQ    ? word.value
                           : comparison == CU_STREAM_WAIT_VALUE_GEQ ? word.value >> (word.wide ? 62 : 30)
                                                                    : 0;
    return {word.address, comparison, word.wide, apart};
}

uint64_t shared_value(const StreamWaits::Word& word, const StreamWaits::Word& other) {
    switch (word.flags & kComparison) {
        case CU_STREAM_WAIT_VALUE_GEQ:
            return std::max(word.value, other.value);
        case CU_STREAM_WAIT_VALUE_AND:
            return word.value | other.value;
        default:  // equal values, or NOR, which 0 ends
            return word.value;
    }
}

}  // namespace

bool StreamWaits::can_end(const Word& word) {
    switch (word.flags & kComparison) {
        case CU_STREAM_WAIT_VALUE_AND:
            return word.value != 0;
        case CU_STREAM_WAIT_VALUE_NOR:
            return word.value != all_ones(word);
        default:
            return true;
    }
}

uint64_t StreamWaits::begin(CUstream stream, const char* call, Words words) {
    Guest* const guest = guest_of_thread();
    const std::string what = std::string(name_of_waits() ? name_of_waits() : call) + " of " +
                             (guest ? guest->tenant() : "the server");
    std::lock_guard lock(mutex_);
    Stream& waits = streams_[stream];
    prune(stream, waits, kLooks);
    waits.push_back({++numbers_, guest, {guest ? guest->id() : 0, what, Clock::now()}, std::move(words)});
    return numbers_;
}

void StreamWaits::enqueued(CUstream stream, uint64_t number, CUresult status) {
    std::lock_guard lock(mutex_);
    Stream& waits = streams_[stream];
    const auto wait =
        std::find_if(waits.begin(), waits.end(), [&](const Wait& each) { return each.number == number; });
    if (wait == waits.end()) return;
    if (status != CUDA_SUCCESS) {
        waits.erase(wait);
        return;
    }
    wait->enqueued = true;
    if (!events_.empty()) {
        wait->behind = events_.back();
        events_.pop_back();
    } else if (real_.cuEventCreate(&wait->behind, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        wait->behind = nullptr;
    }
    if (wait->behind && real_.cuEventRecord(wait->behind, stream) != CUDA_SUCCESS)
        events_.push_back(std::exchange(wait->behind, nullptr));
}

void StreamWaits::captured(const std::vector<Word>& words) {
    std::lock_guard lock(mutex_);
    Captured& all = captured_[guest_of_thread()];
    for (const Word& word : words) {
        const auto [known, added] = all.words.try_emplace(key_of(word), word);
        const uint64_t value = shared_value(known->second, word);
        if (!added && value == known->second.value) continue;
        known->second.value = value;
        all.list = nullptr;
    }
}

StreamWaits::Words StreamWaits::captured() {
    std::lock_guard lock(mutex_);
    Captured& all = captured_[guest_of_thread()];
    if (all.list) return all.list;
    auto list = std::make_shared<std::vector<Word>>();
    for (const auto& [key, word] : all.words) list->push_back(word);
    return all.list = std::move(list);
}

bool StreamWaits::is_over(CUstream stream, const Wait& wait) const {
    if (!wait.enqueued) return false;
    return (wait.behind ? real_.cuEventQuery(wait.behind) : real_.cuStreamQuery(stream)) !=
           CUDA_ERROR_NOT_READY;
}

// With mutex_ held. A stream's waits end in their order.
void StreamWaits::prune(CUstream stream, Stream& waits, size_t most) {
    for (size_t i = 0; i < most && !waits.empty() && is_over(stream, waits.front()); ++i) {
        if (waits.front().behind) events_.push_back(waits.front().behind);
        waits.pop_front();
    }
}

void StreamWaits::prune() {
    for (auto& [stream, waits] : streams_) prune(stream, waits, waits.size());
    std::erase_if(streams_, [](const auto& each) { return each.second.empty(); });
}

bool StreamWaits::any() {
    std::lock_guard lock(mutex_);
    prune();
    return !streams_.empty();
}

std::optional<StreamWaits::Waiter> StreamWaits::eldest(uint32_t beside) {
    std::lock_guard lock(mutex_);
    prune();
    std::optional<Waiter> found;
    for (const auto& [stream, waits] : streams_) {
        const Waiter& waiter = waits.front().waiter;
        if (waiter.session != beside && (!found || waiter.since < found->since)) found = waiter;
    }
    return found;
}

void StreamWaits::end_session(uint32_t session, const std::string& why) {
    std::lock_guard lock(mutex_);
    prune();
    for (const auto& [stream, waits] : streams_) {
        if (waits.front().waiter.session == session && waits.front().guest)
            return waits.front().guest->must_end(why);
    }
}

void StreamWaits::release(const Guest& guest, CUstream errands) {
    std::vector<Word> words;
    {
        std::lock_guard lock(mutex_);
        prune();
        ++releases_;
        for (const auto& [stream, waits] : streams_) {
            const Wait& wait = waits.front();
            if (wait.guest == &guest && !wait.words->empty())
                words.push_back((*wait.words)[releases_ % wait.words->size()]);
        }
    }
    for (const Word& word : words) end(word, errands);
}

void StreamWaits::end(const Word& word, CUstream errands) const {
    const uint64_t value = (word.flags & kComparison) == CU_STREAM_WAIT_VALUE_NOR ? 0 : word.value;
    real_.cuMemsetD32Async(word.address, static_cast<uint32_t>(value), 1, errands);
    if (word.wide) real_.cuMemsetD32Async(word.address + 4, static_cast<uint32_t>(value >> 32), 1, errands);
}

void StreamWaits::forget(const Guest& guest) {
    std::lock_guard lock(mutex_);
    captured_.erase(&guest);
    for (auto& [stream, waits] : streams_) {
        for (Wait& wait : waits) {
            if (wait.guest == &guest) wait.guest = nullptr;
        }
    }
}

}  // namespace smt::runtime::device
