#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "runtime/dispatch/experiments.h"

namespace smt::runtime::dispatch {

namespace {

using schedule::Kernel;
using What = Step::What;

constexpr uint64_t kLongestPause = 300;  // us between two disturbances of a run
constexpr uint64_t kLongRun = 2'000;
constexpr uint64_t kShortRun = 60;  // if there are only stops
// With few workers: at least so many stops are left for a launch.
constexpr uint64_t kStopsLeft = 8;
constexpr uint64_t kMostDoublings = 10;  // 60 ms at the least

int most_of(const Kernel& kernel) { return kernel.ctas_per_sm > 0 ? kernel.ctas_per_sm : 8; }

class Stress final : public Decider {
public:
    Stress(uint64_t seed, Sms sms)
        : random_(seed),
          sms_(std::move(sms)),
          kind_((seed & kQuotasOnly) == kQuotasOnly ? Kind::kQuotas
                : seed & kStopsOnly                 ? Kind::kStops
                                                    : Kind::kEverything) {}

    Step next(const View& view) override {
        using Seen = Kernel::State;
        const Kernel& kernel = view.kernel;
        if (kernel.state == Seen::kWaiting) {
            if (!kernel.stoppable()) {  // whole kernels cannot be disturbed
                told_ = false;
                return {What::kPassThrough};
            }
            count(kernel);
            plan(view.now);
            return begin(kernel);
        }
        const bool due = kernel.state == Seen::kRunning && !told_ && view.now >= next_;
        return due && kernel.stoppable() ? disturb(view) : Step{};
    }
    void done(const Step& step) override { told_ |= step == What::kStop || step == What::kHalt; }
    std::string summary() const override {
        return fmt::format("under stress: {} schedules, {} launches stopped half way", schedules_, stops_);
    }

private:
    enum class Kind { kEverything, kStops, kQuotas };
    uint64_t below(uint64_t bound) { return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_); }
    bool one_in(uint64_t n) { return below(n) == 0; }
    uint32_t up_to(size_t bound) { return 1 + static_cast<uint32_t>(below(bound)); }
    QuotaTable quotas(int most);
    QuotaTable few(uint64_t workers, int most);
    void plan(schedule::TimePoint now);
    Step begin(const Kernel& kernel);  // the launch waits
    Step begin_few(const Kernel& kernel);
    Step disturb(const View& view);  // the launch runs
    Step stop(const View& view);
    void count(const Kernel& kernel);

    std::mt19937_64 random_;
    const Sms sms_;
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

// A table without any place would never end, so one SM always has one.
QuotaTable Stress::quotas(int most) {
    QuotaTable table(static_cast<size_t>(sms_.multiprocessors));
    if (one_in(4)) {  // some SMs, with all places
        for (uint8_t& each : table) each = one_in(2) ? smt::kNoQuota : 0;
    } else {
        for (uint8_t& each : table) each = static_cast<uint8_t>(below(static_cast<uint64_t>(most) + 1));
    }
    uint8_t& lucky = table[sms_.places[below(sms_.places.size())]];
    if (lucky == 0) lucky = 1;
    return table;
}

// Room for so many workers, or a few more, on as many SMs as that takes, from a random one on.
QuotaTable Stress::few(uint64_t workers, int most) {
    const std::vector<uint32_t>& places = sms_.places;
    QuotaTable table(static_cast<size_t>(sms_.multiprocessors));
    const uint64_t each = 1 + below(std::min(workers, static_cast<uint64_t>(most)));
    const uint64_t wanted = std::min<uint64_t>((workers + each - 1) / each, places.size()),
                   first = below(places.size());
    for (uint64_t i = 0; i < wanted; ++i)
        table[places[(first + i) % places.size()]] = static_cast<uint8_t>(each);
    return table;
}

void Stress::plan(schedule::TimePoint now) {
    const uint64_t longest = kind_ == Kind::kStops                 ? kShortRun
                             : kind_ == Kind::kQuotas || one_in(8) ? kLongRun
                                                                   : kLongestPause;
    next_ = now + std::chrono::microseconds(below(longest << std::min(fruitless_, kMostDoublings)));
}

// A stop left a launch half done if blocks of it have run since the last stop, and others have not.
void Stress::count(const Kernel& kernel) {
    ++schedules_;
    const bool same = std::exchange(launch_, kernel.launch) == kernel.launch;
    const uint64_t before = same ? done_ : 0;
    done_ = kernel.blocks_done;
    fruitless_ = same && done_ == before ? fruitless_ + 1 : 0;
    stops_ += std::exchange(told_, false) && done_ > before;
}

Step Stress::begin(const Kernel& kernel) {
    if (kernel.has_door) return {one_in(2) ? What::kPassThrough : What::kRun};
    if (kind_ == Kind::kStops) return begin_few(kernel);
    if (kind_ == Kind::kEverything && one_in(4)) return {What::kPassThrough};
    QuotaTable table = quotas(most_of(kernel));
    return {What::kRun, std::move(table), one_in(3) ? 1 + below(kernel.blocks - kernel.blocks_done) : 0};
}

// A launch that is large enough has the whole device now and then.
Step Stress::begin_few(const Kernel& kernel) {
    const uint64_t left = kernel.blocks - kernel.blocks_done,
                   all = sms_.places.size() * static_cast<uint64_t>(most_of(kernel));
    if (one_in(4) && left > 2 * all) return {What::kPassThrough};
    const uint64_t workers = 1 + below(std::clamp<uint64_t>(left / kStopsLeft, 1, all));
    return {What::kRun, few(workers, most_of(kernel))};
}

Step Stress::stop(const View& view) {
    next_ = view.now;  // if it is not carried out: at the next look
    return {view.passes_through ? What::kStop : What::kHalt};
}

Step Stress::disturb(const View& view) {
    plan(view.now);
    if (kind_ == Kind::kStops || view.kernel.has_door) return stop(view);
    const auto grow = [&](size_t most) { return Step{What::kGrow, {}, 0, up_to(most)}; };
    if (kind_ == Kind::kQuotas) return one_in(2) ? stop(view) : grow(sms_.places.size());
    switch (below(4)) {
        case 0:
            return stop(view);
        case 1:
            return {What::kChange, quotas(most_of(view.kernel))};
        case 2:
            return grow(static_cast<size_t>(sms_.multiprocessors));
        default:
            return {};
    }
}

}  // namespace

std::unique_ptr<Decider> make_stress(uint64_t seed, Sms sms) {
    return std::make_unique<Stress>(seed, std::move(sms));
}

}  // namespace smt::runtime::dispatch
