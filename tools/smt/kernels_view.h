// What `smt log --kernels` shows: each kernel that ran, how often, and how: managed by what, or unmanaged and
// why. Where the server has estimated GPU times (gpu_time in SMT_JOURNAL): what part of the time was of
// launches that can be stopped.
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

// Whether a launch run so can be stopped between two blocks, if they do not all run at once.
bool stoppable(const Treatment& treatment);

// GPU time of launches, estimated by what the host saw.
struct KernelTime {
    uint64_t ns = 0;
    uint64_t one_wave_ns = 0;  // of that: of launches whose blocks all run at once
    uint64_t launches = 0;
    KernelTime& operator+=(const KernelTime& other) {
        ns += other.ns, one_wave_ns += other.one_wave_ns, launches += other.launches;
        return *this;
    }
};

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
        std::map<uint64_t, KernelTime> times;  // by stream
        KernelTime time() const;               // of all streams
    };

    void add_launch(const Key& key, const std::string& symbol) { count(key, symbol).launches += 1; }
    void add_into_graph(const Key& key, const std::string& symbol) { count(key, symbol).into_graphs += 1; }
    // Of all its launches so far on that stream, which is a number of the server's.
    void set_time(const Key& key, const std::string& symbol, uint64_t stream, const KernelTime& time) {
        count(key, symbol).times[stream] = time;
        timed_ = true;
    }
    bool empty() const { return rows_.empty(); }
    std::string text() const;
    std::string json() const;  // a line for each row

private:
    Count& count(const Key& key, const std::string& symbol) {
        Count& found = rows_[key];
        found.symbol = symbol;
        return found;
    }

    std::string shares() const;

    std::map<Key, Count> rows_;
    bool timed_ = false;
};

}  // namespace smt::tools
