// What launches of a kernel took, by what tells them apart: the same grid may take a microsecond or a second,
// as its scalar arguments say (a number of iterations, a length). So the last duration is kept by launch key,
// a hash of grid, block, shared memory and all arguments that are no pointers (server/handlers/code/
// launch_key.h). Programs launch the same again and again, and the last duration of the same launch is the
// best guess for the next one.
//
// A key that was not seen yet is predicted by FLEP's regression (flep.txt, 4.2; profiler/models/duration.h)
// over the last kRows launches of different keys, by blocks, threads and shared memory. The paper's fourth
// feature, the size of the input, is left out: to look it up takes a lock on each launch. The regression is
// used where two rows differ in these features, or one is like the launch: a line through one point would say
// that ten blocks take ten times as long as one.
//
// A program that counts its launches in an argument has ever new keys. Keys are kept in two generations of
// kMost, and the older one is dropped when the younger one is full, so keys that come again stay.
//
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "profiler/models/duration.h"

namespace smt::runtime::dispatch {

class LastDurations {
public:
    using Launch = profiler::models::Launch;

    // A whole launch took so long, alone. Key 0: it has none, and nothing is kept.
    void learn(uint64_t key, const Launch& launch, double took_ns);
    // ns that the last launch with this key took, alone. 0: not known.
    double last(uint64_t key) const;
    // The last duration, else by regression. Nothing: neither is known.
    std::optional<double> predict(uint64_t key, const Launch& launch) const;
    void forget();

    static constexpr size_t kMost = 256;
    static constexpr size_t kRows = 64;

private:
    struct Row {
        uint64_t key;
        profiler::models::TimedLaunch timed;
    };
    using Generation = std::unordered_map<uint64_t, double>;
    struct Known {  // of most kernels nothing is, and there may be ten thousand
        Generation young, old;
        std::vector<Row> rows;
        size_t next = 0;   // row to be replaced
        size_t fresh = 0;  // rows since the fit
        profiler::models::Duration model;
        bool varies = false;  // two rows differ in their features
    };
    void fit() const;  // requires mutex_ and known_

    mutable std::mutex mutex_;
    std::unique_ptr<Known> known_;  // null: nothing
};

}  // namespace smt::runtime::dispatch
