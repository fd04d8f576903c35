// Lookup of a policy's entry for a kernel. Policies keep entries in the order in which snapshots list
// kernels, which seldom changes. So the entry behind the last one found is the likely one, or one soon behind
// it if not all are looked up: n kernels take n steps instead of n * n.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace smt::runtime::schedule {

// The index of the entry for which `is_it` is true; entries.size(): none. Looks from `next` on, then from the
// beginning, and on success sets `next` to the index behind the entry.
template <class Entry, class IsIt>
size_t find_from(const std::vector<Entry>& entries, size_t& next, const IsIt& is_it) {
    const size_t from = std::min(next, entries.size());
    const auto begin = entries.begin() + static_cast<std::ptrdiff_t>(from);
    auto found = std::find_if(begin, entries.end(), is_it);
    if (found == entries.end()) {
        found = std::find_if(entries.begin(), begin, is_it);
        if (found == begin) return entries.size();
    }
    const auto place = static_cast<size_t>(found - entries.begin());
    next = place + 1;
    return place;
}

// The same from the entry at `place` on, which becomes the one that is found: for several kernels in a row
// that have one entry.
template <class Entry, class IsIt>
size_t find_near(const std::vector<Entry>& entries, size_t& place, const IsIt& is_it) {
    size_t next = place;
    const size_t found = find_from(entries, next, is_it);
    if (found < entries.size()) place = found;
    return found;
}

// The last kMost distinct entries that were noted.
template <class Entry>
class Recent {
public:
    bool contains(const Entry& entry) const { return std::ranges::find(entries_, entry) != entries_.end(); }
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
