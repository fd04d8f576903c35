// Finding what is kept of a kernel. Policies keep their entries in the order in which snapshots name kernels, which seldom changes, so
// the place where the last one ended is the likely one: sixteen kernels are found in sixteen steps and not in a hundred.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace smt::runtime::schedule {

// The place of the first entry for which `is_it` is true, entries.size() if there is none; `next` is looked at first, and is the place behind it then.
template <class Entry, class IsIt>
size_t find_from(const std::vector<Entry>& entries, size_t& next, const IsIt& is_it) {
    if (next < entries.size() && is_it(entries[next])) return next++;
    const auto found = std::find_if(entries.begin(), entries.end(), is_it);
    const auto place = static_cast<size_t>(found - entries.begin());
    if (found != entries.end()) next = place + 1;
    return place;
}

// The entries that were noted last.
template <class Entry>
class Recent {
public:
    bool contains(const Entry& entry) const { return std::find(entries_.begin(), entries_.end(), entry) != entries_.end(); }
    void note(const Entry& entry) {
        if (contains(entry)) return;
        if (entries_.size() == kMost) entries_.erase(entries_.begin());
        entries_.push_back(entry);
    }

private:
    static constexpr size_t kMost = 64;
    std::vector<Entry> entries_;
};

}  // namespace smt::runtime::schedule
