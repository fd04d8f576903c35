// What is done to the launches of a stream under stress: at random it runs with random quotas, in slices, is
// stopped, moved, shrunk and grown, so that results which depend on any of this show. One seed, one series
// of choices; when they take effect depends on the device. With kStopsOnly in the seed it is stopped and let go on, and
// nothing else, as often as it can be.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

class Stress {
public:
    static constexpr uint64_t kStopsOnly = 1ull << 31;

    // `places`: the multiprocessors that the stream may use.
    Stress(uint64_t seed, int multiprocessors, std::vector<uint32_t> places)
        : random_(seed), multiprocessors_(multiprocessors), places_(std::move(places)), stops_only_(seed & kStopsOnly) {}

    // Called again and again while the stream has launches that wait; says what was done through the stream.
    void step(ManagedStream& stream, const schedule::Kernel& kernel);
    uint64_t schedules() const { return schedules_; }   // runs begun
    uint64_t stops() const { return stops_; }           // that left a launch half done

private:
    QuotaTable quotas(int most);
    uint64_t below(uint64_t bound) { return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_); }
    bool one_in(uint64_t n) { return below(n) == 0; }
    void plan();
    void begin(ManagedStream& stream, const schedule::Kernel& kernel);     // it waits
    void disturb(ManagedStream& stream, const schedule::Kernel& kernel);   // it runs

    std::mt19937_64 random_;
    const int multiprocessors_;
    const std::vector<uint32_t> places_;
    const bool stops_only_;
    uint64_t schedules_ = 0;
    uint64_t stops_ = 0;
    schedule::TimePoint next_{};      // when something is done to what runs
};

}  // namespace smt::runtime::dispatch
