// Lookup of a policy's entry for a kernel. Policies keep entries in the order in which snapshots list
// kernels, which seldom changes. So the entry behind the last one found is the likely one, and sixteen
// kernels take sixteen steps instead of a hundred.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace smt::runtime::schedule {

// The index of the first entry for which `is_it` is true; entries.size(): none. Tries `next` first, and on
// success sets it to the index behind the entry.
template <class Entry, class IsIt>
size_t find_from(const std::vector<Entry>& entries, size_t& next, const IsIt& is_it) {
    if (next < entries.size() && is_it(entries[next])) return next++;
    const auto found = std::find_if(entries.begin(), entries.end(), is_it);
    const auto place = static_cast<size_t>(found - entries.begin());
    if (found != entries.end()) next = place + 1;
    return place;
}

// The last kMost distinct entries that were noted.
template <class Entry>
class Recent {
public:
    bool contains(const Entry& entry) const {
        return std::find(entries_.begin(), entries_.end(), entry) != entries_.end();
    }
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
