// What is known of a kernel: one profile for each kernel, block shape, grid class and device.
//
// All that is measured is kept as sums, of launches, blocks and nanoseconds. So two profiles of one key merge
// by adding, in any order, and a mean is a division away. Counts are signed, as SQLite's are.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "profiler/models/utilization.h"

namespace smt::profiler {

// Launches of about as many blocks share a profile: class n is from 2^n blocks to one less than 2^(n+1). A
// grid of none is in class 0 with that of one.
constexpr int grid_class(uint64_t blocks) { return blocks == 0 ? 0 : std::bit_width(blocks) - 1; }

struct Key {
    std::string kernel;              // the symbol, as in the image
    std::string image;               // digest of the image, in hex: the same symbol may be another kernel
    std::array<int64_t, 3> block{};  // threads in x, y, z
    int64_t grid_class = 0;
    std::string device;  // a name that is the same for devices that are as fast

    auto operator<=>(const Key&) const = default;
};

// What a block takes. Exact, so a later one replaces an earlier one.
struct Resources {
    int64_t registers = 0;    // of a thread
    int64_t local_bytes = 0;  // of a thread
    int64_t static_shared_bytes = 0;
    int64_t dynamic_shared_bytes = 0;
    int64_t most_ctas_per_sm = 0;

    bool operator==(const Resources&) const = default;
};

// How many multiprocessors the kernel had, and CTAs on each.
struct Placement {
    int64_t sms = 0;
    int64_t ctas_per_sm = 0;

    auto operator<=>(const Placement&) const = default;
};

// Launches that ran so, alone.
struct Times {
    int64_t launches = 0;
    int64_t blocks = 0;
    int64_t input_bytes = 0;  // 0: not known
    int64_t nanoseconds = 0;

    bool operator==(const Times&) const = default;
};

// Another kernel on the same multiprocessors, all of them, with so many CTAs of each.
struct Beside {
    Key other;  // of the same device
    int64_t ctas_per_sm = 0;
    int64_t other_ctas_per_sm = 0;

    auto operator<=>(const Beside&) const = default;
};

// What was done of a kernel in windows of time in which both were at work.
struct SharedTime {
    int64_t windows = 0;
    int64_t blocks = 0;
    int64_t nanoseconds = 0;

    bool operator==(const SharedTime&) const = default;
};

// From the decision to stop it to its last worker gone.
struct Preemption {
    int64_t stops = 0;
    int64_t nanoseconds = 0;

    bool operator==(const Preemption&) const = default;
};

// Slices of launches, and what they took beyond their part of the whole launch.
struct Slicing {
    int64_t slices = 0;
    int64_t nanoseconds = 0;

    bool operator==(const Slicing&) const = default;
};

struct Profile {
    Key key;
    std::optional<Resources> resources;
    std::map<Placement, Times> times;
    std::map<Beside, SharedTime> beside;
    // The same where a server tried it for a moment while programs ran (schedule/policies/exploration.h).
    // What was measured counts first.
    std::map<Placement, Times> learnt_times;
    std::map<Beside, SharedTime> learnt_beside;
    models::Counters counters;
    Preemption preemption;
    Slicing slicing;
    std::map<std::string, double> coefficients;  // of models, such as "duration.intercept_ns"

    bool operator==(const Profile&) const = default;
};

}  // namespace smt::profiler
