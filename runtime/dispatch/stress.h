// Experiment: random disturbance of a stream's launches. They run with random quotas, in slices, and are
// stopped, moved, shrunk and grown, so that results that depend on any of this show it. One seed gives one
// series of choices; when they take effect depends on the device. The seed's upper bits select fewer kinds of
// disturbance, and more of each:
//
//   kStopsOnly    Launches are stopped and resumed as often as possible, with few workers at a time. So a
//                 launch takes many stops, and several programs can be stopped at once.
//   kQuotasOnly   Launches run with one random table after the other, and with further workers that find no
//                 place, so that mappings (SMT_JOURNAL=mapping) can be checked against the tables.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "runtime/dispatch/experiment.h"
#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

class Stress final : public Experiment {
public:
    static constexpr uint64_t kStopsOnly = 1ull << 31;
    static constexpr uint64_t kQuotasOnly = 3ull << 30;

    // `places`: the SMs that the stream may use.
    Stress(uint64_t seed, int multiprocessors, std::vector<uint32_t> places)
        : random_(seed),
          multiprocessors_(multiprocessors),
          places_(std::move(places)),
          kind_(kind_of(seed)) {}

    void step(ManagedStream& stream, const schedule::Kernel& kernel) override;
    std::string summary() const override;

private:
    enum class Kind { kEverything, kStops, kQuotas };
    static Kind kind_of(uint64_t seed) {
        return (seed & kQuotasOnly) == kQuotasOnly ? Kind::kQuotas
               : seed & kStopsOnly                 ? Kind::kStops
                                                   : Kind::kEverything;
    }
    QuotaTable quotas(int most);
    QuotaTable few(uint64_t workers, int most);
    uint64_t below(uint64_t bound) { return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_); }
    bool one_in(uint64_t n) { return below(n) == 0; }
    void plan(const ManagedStream& stream);
    void begin(ManagedStream& stream, const schedule::Kernel& kernel);  // the launch waits
    void begin_few(ManagedStream& stream, const schedule::Kernel& kernel);
    void disturb(ManagedStream& stream, const schedule::Kernel& kernel);  // the launch runs
    void stop(ManagedStream& stream);
    void count(const schedule::Kernel& kernel);

    std::mt19937_64 random_;
    const int multiprocessors_;
    const std::vector<uint32_t> places_;
    const Kind kind_;
    bool told_ = false;    // a stop was issued to the running launch
    uint64_t launch_ = 0;  // the launch that waited last
    uint64_t done_ = 0;    // its blocks done at that time
    // Its last runs in a row without a block done: workers begin later than the stop. The next run may be
    // twice as long.
    uint64_t fruitless_ = 0;
    uint64_t schedules_ = 0;      // runs begun
    uint64_t stops_ = 0;          // stops that left a launch half done
    schedule::TimePoint next_{};  // time of the next disturbance
};

}  // namespace smt::runtime::dispatch
