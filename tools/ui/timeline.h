// What a journal says of launches, multiprocessors, stops and decisions, on one clock, to be cut into frames.
//
// The clock is the simulated device's where the journal has entries of it, else the server's. A launch counts
// when it has ended: before, the journal does not know where it runs. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/journal/journal.h"

namespace smt::tools::ui {

inline constexpr int kMostMultiprocessors = 64 * runtime::journal::kPlaceWords;

// What a frame shows: where blocks ran after `from` and until `to`, figures of all that ended after `over`.
struct Window {
    uint64_t over = 0, from = 0, to = 0;
};

struct Part {
    uint32_t tenant = 0;
    double part = 0;  // of the frame's time
};

struct Quantiles {
    size_t count = 0;
    uint64_t median_ns = 0, p99_ns = 0;
};

struct Figures {
    uint64_t launches = 0;
    Quantiles run;      // from a launch's start to its end
    Quantiles latency;  // from when the server passed a launch to the driver to its end
    Quantiles stop;     // from a decision to the end of the last block
};

struct Decision {
    uint64_t time_ns = 0, sequence = 0;
    uint32_t tenant = 0;
    std::string text;
};

struct Frame {
    std::vector<std::vector<Part>> multiprocessors;
    std::map<uint32_t, Figures> tenants;  // that had something
    std::vector<Decision> decisions;      // the newest until its end, oldest first
};

class Timeline {
public:
    // keep_ns: what ended so long before the newest entry is forgotten; 0: nothing is.
    explicit Timeline(uint64_t keep_ns) : keep_ns_(keep_ns) {}

    void follow(const runtime::journal::Reader& journal);
    // Another journal begins. Tenants keep their numbers.
    void restart();

    Frame frame(const Window& window, int multiprocessors) const;
    uint32_t number_of(const std::string& tenant);  // from 0, in the order of their appearance
    const std::vector<std::string>& tenants() const { return names_; }

    bool is_virtual() const { return virtual_; }
    bool is_placed() const { return placed_; }  // it is known where something ran
    uint64_t begin_ns() const { return begin_.value_or(0); }
    uint64_t end_ns() const { return end_; }
    uint64_t longest_ns() const { return longest_; }          // that something ran
    int multiprocessors() const { return multiprocessors_; }  // the highest that something ran on, and one
    uint64_t decisions() const { return decided_; }           // so far

private:
    struct Placed {
        uint64_t end = 0, start = 0;
        uint64_t where[runtime::journal::kPlaceWords] = {};
        uint32_t tenant = 0;
    };
    // A time that something took.
    struct Took {
        uint64_t end = 0, ns = 0;
    };
    // Each tenant's in the order of the end, so that a frame is made without looking at each of them: there
    // are a million where tenants launch as fast as they can.
    using ByTenant = std::map<uint32_t, std::deque<Took>>;

    void add(const runtime::journal::Reader& journal, const runtime::journal::Entry& entry);
    void take_launch(const runtime::journal::Entry& entry);
    void take_run(const runtime::journal::Entry& entry, uint64_t shift);
    void look_again(const runtime::journal::Reader& journal);
    void take_sessions(const runtime::journal::Reader& journal, const runtime::journal::Entry& entry);
    void see(uint64_t time);
    void forget();
    std::vector<std::vector<Part>> parts(const Window& window, size_t multiprocessors) const;
    uint32_t tenant_of(uint32_t session);

    const uint64_t keep_ns_;
    uint64_t next_ = 0;  // sequence
    bool virtual_ = false, placed_ = false;
    std::optional<uint64_t> begin_;
    uint64_t end_ = 0, longest_ = 0, decided_ = 0;
    std::optional<uint64_t> shift_;  // from the GPU's timer to the journal's clock, which is ahead
    int multiprocessors_ = 0;

    std::vector<std::string> names_;
    std::map<std::string, uint32_t> numbers_;
    std::map<uint32_t, uint32_t> by_session_;
    std::deque<uint64_t> untimed_;  // launches whose times may still be added to their entries

    // In the order of the end.
    std::deque<Placed> ran_;
    std::deque<Decision> decisions_;
    ByTenant launches_;  // ns: 0
    ByTenant runs_, latencies_, stops_;
};

}  // namespace smt::tools::ui
