// What `smt log --kernels` shows: each kernel that ran, how often, and how: managed by what, or unmanaged and
// why.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace smt::tools {

// How launches of a kernel were run.
struct Treatment {
    std::string how;     // "managed by PTX", "managed by source", "unmanaged", "as it is", "not known"
    std::string reason;  // empty: none is needed
};

// From the journal's words, "how: reason".
Treatment treatment_of(std::string_view words);

// Counts what a journal says, for one table. Launches of which the entry was overwritten are not counted.
class KernelTable {
public:
    struct Key {
        std::string tenant, kernel, words;
        auto operator<=>(const Key&) const = default;
    };
    struct Count {
        uint64_t launches = 0;
        uint64_t into_graphs = 0;  // how often it became part of a graph; how often it then ran is unknown
        std::string symbol;
    };

    void add_launch(const Key& key, const std::string& symbol) { count(key, symbol).launches += 1; }
    void add_into_graph(const Key& key, const std::string& symbol) { count(key, symbol).into_graphs += 1; }
    bool empty() const { return rows_.empty(); }
    std::string text() const;
    std::string json() const;  // a line for each row

private:
    Count& count(const Key& key, const std::string& symbol) {
        Count& found = rows_[key];
        found.symbol = symbol;
        return found;
    }

    std::map<Key, Count> rows_;
};

}  // namespace smt::tools
